'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'a graphql-yoga API',
  packages: { 'graphql-yoga': '5.16.0', graphql: '16.11.0' },
  limitMib: 1024,
  load: '80 queries a second of 12 kinds',
  app ({ port }) {
    const http = require('node:http')
    const { createSchema, createYoga } = require('graphql-yoga')
    const typeDefs = 'type Item { id: Int, name: String } type Query { items(count: Int): [Item] }'
    const items = (_, { count }) =>
      Array.from({ length: count }, (_, id) => ({ id, name: `item ${id}` }))
    const schema = createSchema({ typeDefs, resolvers: { Query: { items } } })
    const yoga = createYoga({ schema, logging: false })
    http.createServer(yoga).listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond, request }) {
    const headers = { 'content-type': 'application/json' }
    perSecond(80, n => {
      const body = JSON.stringify({ query: `{ items(count: ${40 + n % 12}) { id name } }` })
      request(port, { method: 'POST', path: '/graphql', headers, body })
    })
  }
}
