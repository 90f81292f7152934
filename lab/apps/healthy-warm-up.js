'use strict'

// A site compiles each page template on its first visit. For the first half minute heap and RSS
// grow with every new template, ever more slowly; they stay constant once all are compiled.
const http = require('node:http')
const vm = require('node:vm')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')

const TEMPLATES = 1500

/**
 * @typedef {{ render: (values: Record<string, string>) => string, labels: Record<string, string> }}
 *   Template
 */

/** @type {Map<string, Template>} */
const templates = new Map()

/**
 * @param {string} name
 * @returns {Template}
 */
function template (name) {
  const known = templates.get(name)
  if (known) return known
  const rows = Array.from(
    { length: 150 },
    (_, i) => `'<p class="${name}-${i}">' + values.label${i % 8} + '</p>'`
  )
  const compiled = {
    render: vm.runInThisContext(`(function (values) { return ${rows.join('+')} })`, {
      filename: `${name}.html`
    }),
    labels: Object.fromEntries(
      Array.from({ length: 8 }, (_, i) => [`label${i}`, `${name} label ${i} `.repeat(60)])
    )
  }
  templates.set(name, compiled)
  return compiled
}

const run = appRun({ figures: () => ({ templates: templates.size }) })
const server = http.createServer((request, response) => {
  const [, resource, name] = (request.url ?? '/').split('/')
  if (resource !== 'pages') return response.writeHead(404).end()
  const { render, labels } = template(`page-${name}`)
  response.writeHead(200, { 'content-type': 'text/html' }).end(render(labels))
})

withLoad(server, run, {
  phases: [{ perSecond: 160 }],
  requests: [{ method: 'GET', path: '/pages/{key}' }],
  keys: TEMPLATES
})
