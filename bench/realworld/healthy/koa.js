'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'a koa API with sessions in cookies',
  packages: { koa: '3.0.1', 'koa-session': '7.0.2' },
  node: '22.23.3',
  load: '250 requests a second',
  app ({ port }) {
    const Koa = require('koa')
    const { createSession, default: session } = require('koa-session')
    const app = new Koa()
    app.keys = ['shop']
    const use = createSession ?? session ?? require('koa-session')
    app.use(use.length === 1 ? use(app) : use({}, app))
    app.use(async context => {
      context.session.views = (context.session.views ?? 0) + 1
      const rows = Array.from({ length: 100 }, (_, row) => ({ row }))
      context.body = { views: context.session.views, rows }
    })
    app.listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond, request }) {
    perSecond(250, () => request(port))
  }
}
