'use strict'

// prom-client with the settings of its readme: default metrics, scraped every second.
const http = require('node:http')
const { collectDefaultMetrics, register } = require('prom-client')

collectDefaultMetrics()
http.createServer(async (_, response) => {
  response.setHeader('content-type', register.contentType)
  response.end(await register.metrics())
}).listen(Number(process.env.SCRAPE_PORT), '127.0.0.1').unref()
