'use strict'

const { parser } = require('@prometheus-io/lezer-promql')
const { filled } = require('../../scripts/dashboards')

/**
 * Parses a PromQL expression by Prometheus' own grammar.
 * @param {string} expr may contain Grafana's variables
 * @returns {{ error: boolean, metrics: { name: string, ranged: boolean, functions: string[] }[] }}
 *   metrics, each with a mark for range selectors, and the functions around it, innermost first
 */
function parsePromql (expr) {
  const text = filled(expr)
  let error = false
  /** @type {{ name: string, ranged: boolean, functions: string[] }[]} */
  const metrics = []
  parser.parse(text).iterate({
    enter ({ type, node, from, to }) {
      if (type.isError) error = true
      if (type.name !== 'Identifier' || node.parent?.name !== 'VectorSelector') return
      const functions = []
      let ranged = false
      /** @type {typeof node.parent} */
      let outer = node.parent
      for (; outer; outer = outer.parent) {
        if (outer.name === 'MatrixSelector') ranged = true
        if (outer.name === 'FunctionCall') {
          functions.push(text.slice(outer.from, outer.to).split('(')[0].trim())
        }
      }
      metrics.push({ name: text.slice(from, to), ranged, functions })
    }
  })
  return { error, metrics }
}

module.exports = { parsePromql }
