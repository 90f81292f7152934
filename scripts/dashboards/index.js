'use strict'

/** Dashboards by the name of their file in dashboards/. @type {Readonly<Record<string, () => object>>} */
const dashboards = Object.freeze({
  fleet: require('./fleet'),
  process: require('./process'),
  exporter: require('./exporter'),
  nodejs: require('./nodejs')
})

module.exports = { dashboards }
