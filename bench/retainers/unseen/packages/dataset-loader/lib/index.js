'use strict'

const memo = Object.create(null)
module.exports = function load (key, make) {
  memo[key] ??= Promise.resolve(make(key))
  return memo[key]
}
