'use strict'

const { numbers, run } = require('./common')
const tenants = new Map()
function session (n) {
  const tenant = 't' + n % 20
  if (!tenants.has(tenant)) tenants.set(tenant, new Map())
  tenants.get(tenant).set('s' + n, { user: n, cart: numbers(n, 300) })
}
run(session, 800)
setInterval(() => tenants.size, 1000)
