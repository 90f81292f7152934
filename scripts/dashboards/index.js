'use strict'

/**
 * Dashboards by the name of their file in dashboards/.
 * @type {Readonly<Record<string, () => object>>}
 */
const dashboards = Object.freeze({
  fleet: require('./fleet'),
  process: require('./process'),
  exporter: require('./exporter'),
  nodejs: require('./nodejs')
})

/**
 * Replaces Grafana's variables in a query of a panel. By default their values select everything.
 * @param {string} expr
 * @param {{ rateInterval?: string, target?: string }} [chosen]
 */
const filled = (expr, { rateInterval = '1m', target = '.+' } = {}) =>
  expr
    .replaceAll('$__rate_interval', rateInterval)
    .replaceAll('$target', target)
    .replace(/\$\w+/g, '.+')

/** Panels whose metrics some kernels do not provide. */
const NOT_EVERYWHERE =
  /memwatch_cpu_|memwatch_memory_pressure_|memwatch_exporter_memory_limit_bytes/

/**
 * True for a panel that may be empty.
 * @param {any} panel
 * @param {string} expr query of the panel
 */
const mayBeEmpty = ({ fieldConfig }, expr) =>
  fieldConfig.defaults.noValue !== undefined || NOT_EVERYWHERE.test(expr)

module.exports = { dashboards, filled, mayBeEmpty }
