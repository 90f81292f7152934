'use strict'

// A service calls its backend through a keep-alive pool. In the first seconds the pool grows to its
// limit of ninety connections, and stays there.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const pool = new http.Agent({ keepAlive: true, maxSockets: 90, maxFreeSockets: 90 })
const run = appRun({ work: 'calls' })
const backend = http.createServer((request, response) =>
  setTimeout(() => response.end('{"ok":true}'), 150 + Math.random() * 100)
)
backend.keepAliveTimeout = 120_000

backend.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (backend.address())
  let perSecond = 20
  const ramp = setInterval(() => { if ((perSecond += 20) >= 320) clearInterval(ramp) }, 600)
  withJobs(run, {
    perSecond: 400,
    atOnce: 400,
    job: number =>
      number % 400 >= perSecond
        ? undefined
        : new Promise(resolve =>
          http
            .get({ port, agent: pool, path: '/', host: '127.0.0.1' }, answer =>
              answer.resume().on('end', () => resolve(undefined))
            )
            .on('error', () => resolve(undefined))
        )
  })
})
