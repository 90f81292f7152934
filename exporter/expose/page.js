'use strict'

const path = require('node:path')
const { filesIn, sendFile } = require('./static-files')

const PAGE = path.join(__dirname, '../page/index.html')
/** `npm run generate` bundles the page's modules and styles here. */
const BUILT = path.join(__dirname, '../page/built')
/**
 * Content security policy: the page loads from and sends to this exporter only. uPlot sets sizes by
 * element.style, which needs no exception.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " +
    "'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The index for clients other than browsers. */
const INDEX = `memwatch exporter

/                   in a browser: the live page
/metrics            metrics for Prometheus
/api/v1/targets     watched processes and workers
/api/v1/diagnoses   findings
/api/v1/deaths      ended processes, and the causes
/api/v1/targets/TARGET/series?track=rssBytes   history of a number, up to a week
/api/v1/targets/TARGET/trim   predicted effect of malloc_trim; POST runs it
/api/v1/plan?node=18,24&memory=512Mi   heap sizes that V8 would choose; target= compares
/api/v1/captures    profiles and snapshots, and the lines of code that they name
/api/v1/processes   processes without an agent (--attach-on-request)
/api/v1/recording?seconds=60   POST: records frames for memwatch diagnose
/api/v1/live        all changes, as server-sent events
/api/v1/openapi.json   description of the API, for programs
/-/healthy  /-/ready
`

/**
 * GET /: the page, GET /page/:file: its files. A client that does not accept HTML gets a list of
 * URLs.
 * @param {import('fastify').FastifyInstance} server
 */
function pageRoutes (server) {
  const files = filesIn(BUILT)
  server.get('/', async (request, reply) => /\btext\/html\b/.test(request.headers.accept ?? '')
    ? sendFile(request, reply, PAGE, POLICY)
    : reply.type('text/plain; charset=utf-8').header('vary', 'accept').send(INDEX))
  server.get('/page/:file', async (request, reply) => {
    const { file } = /** @type {{ file: string }} */ (request.params)
    return sendFile(request, reply, files.get(file), POLICY)
  })
}

module.exports = { pageRoutes }
