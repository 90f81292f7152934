'use strict'

// Five processes: node:cluster forks a file only.
const cluster = require('node:cluster')
const http = require('node:http')

const WORKERS = 4

if (cluster.isPrimary) for (let i = 0; i < WORKERS; i++) cluster.fork()
else http.createServer((request, response) => response.end()).listen(0)
