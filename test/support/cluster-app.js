'use strict'

// Five processes: node:cluster forks a file only.
const cluster = require('node:cluster')
const http = require('node:http')

const WORKERS = 4
// Its types are those of `import`, where this object is the default export.
const { isPrimary, fork } = /** @type {import('node:cluster').Cluster} */ (/** @type {unknown} */ (cluster))

if (isPrimary) for (let i = 0; i < WORKERS; i++) fork()
else http.createServer((request, response) => response.end()).listen(0)
