'use strict'

// A rule engine creates a vm context for each tenant's request, and retains a function of it "for
// metrics". The function keeps the context alive with all its globals. `--fixed` keeps one context.
const http = require('node:http')
const vm = require('node:vm')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

/** @type {Function[]} */
const rules = []
const run = appRun({ figures: () => ({ rules: rules.length }) })
const script = new vm.Script('(price) => price * 1.2 + tenant.length')
const shared = vm.createContext({ tenant: 'all' })

const server = http.createServer((request, response) => {
  const tenant = request.url ?? ''
  const rule = script.runInContext(run.fixed ? shared : vm.createContext({ tenant }))
  if (!run.fixed || rules.length === 0) rules.push(rule)
  const rows = Array.from({ length: 800 }, (_, i) => ({ i, tenant, price: rule(i) }))
  sendJson(response, rows.slice(0, 5))
})

withLoad(server, run, {
  phases: [{ perSecond: 5 }],
  requests: [{ method: 'GET', path: '/tenants/{key}' }]
})
