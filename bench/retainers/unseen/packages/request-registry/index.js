'use strict'
// keeps each request until finish() is called
const inFlight = new Map()
let next = 0
exports.begin = (request) => {
  const id = ++next
  inFlight.set(id, { request, startedAt: Date.now() })
  return id
}
exports.finish = (id) => inFlight.delete(id)
