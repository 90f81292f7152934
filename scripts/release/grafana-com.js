'use strict'

/**
 * Converts dashboards to the form of grafana.com and Grafana's import dialog: the data source is an
 * input instead of a variable, and the file names the plugins in use.
 */

const INPUT = 'DS_PROMETHEUS'
/** Uid of the data source that dashboards of this repository refer to. */
const VARIABLE = '${datasource}' // eslint-disable-line no-template-curly-in-string
/** Grafana version whose schema the dashboards use; later versions read it. */
const GRAFANA_VERSION = '12.0.0'

/** Names of panel plugins, by their id. */
const PANELS = { bargauge: 'Bar gauge', stat: 'Stat', table: 'Table', timeseries: 'Time series' }

/**
 * @param {{ type: string, panels?: any[] }[]} panels
 * @returns {string[]} types of all panels, including panels in rows; a row is no plugin
 */
const panelTypes = panels =>
  panels.flatMap(({ type, panels: inner = [] }) =>
    [...(type === 'row' ? [] : [type]), ...panelTypes(inner)])

/**
 * @param {any} dashboard dashboard in the form of scripts/dashboards
 * @returns {any}
 * @throws {Error} if a panel type has no name in PANELS
 */
function forGrafanaCom (dashboard) {
  const types = [...new Set(panelTypes(dashboard.panels))].sort()
  const unknown = types.filter(type => !(type in PANELS))
  if (unknown.length > 0) throw new Error(`name the panel ${unknown} in ${__filename}`)
  const { templating: { list }, ...rest } =
    JSON.parse(JSON.stringify(dashboard).replaceAll(VARIABLE, `\${${INPUT}}`))
  return {
    __inputs: [
      {
        name: INPUT,
        label: 'Prometheus',
        description: 'A Prometheus that scrapes the apps and the exporters of memwatch',
        type: 'datasource',
        pluginId: 'prometheus',
        pluginName: 'Prometheus'
      }
    ],
    __elements: {},
    __requires: [
      { type: 'grafana', id: 'grafana', name: 'Grafana', version: GRAFANA_VERSION },
      { type: 'datasource', id: 'prometheus', name: 'Prometheus', version: '1.0.0' },
      ...types.map(id => ({
        type: 'panel',
        id,
        name: PANELS[/** @type {keyof typeof PANELS} */ (id)],
        version: ''
      }))
    ],
    id: null,
    ...rest,
    templating: {
      list: list.filter((/** @type {{ type: string }} */ { type }) => type !== 'datasource')
    }
  }
}

module.exports = { forGrafanaCom, INPUT }
