'use strict'

// An app of five processes. It is a file of its own, because node:cluster can only fork a file.
const cluster = require('node:cluster')
const http = require('node:http')

const WORKERS = 4
// The types describe `import`, in which this object is the default export.
const { isPrimary, fork } = /** @type {import('node:cluster').Cluster} */ (/** @type {unknown} */ (cluster))

if (isPrimary) for (let i = 0; i < WORKERS; i++) fork()
else http.createServer((request, response) => response.end()).listen(0)
