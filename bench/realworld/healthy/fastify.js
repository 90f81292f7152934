'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'a fastify API with schemas',
  packages: { fastify: '5.6.1' },
  load: '300 requests a second',
  app ({ port }) {
    const fastify = require('fastify')({ logger: { level: 'error' } })
    const item = { type: 'object', properties: { id: { type: 'integer' }, name: { type: 'string' } } }
    fastify.get('/', { schema: { response: { 200: { type: 'array', items: item } } } }, async () =>
      Array.from({ length: 200 }, (_, id) => ({ id, name: `item ${id}` })))
    fastify.listen({ port, host: '127.0.0.1' })
  },
  traffic ({ port, perSecond, request }) {
    perSecond(300, () => request(port))
  }
}
