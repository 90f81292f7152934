'use strict'

const {
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  DashboardBuilder,
  RowBuilder,
  AnnotationQueryBuilder,
  DashboardLinkBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  VariableRefresh,
  DashboardCursorSync,
  DashboardLinkType
} = require('@grafana/grafana-foundation-sdk/dashboard')
const timeseries = require('@grafana/grafana-foundation-sdk/timeseries')
const stat = require('@grafana/grafana-foundation-sdk/stat')
const table = require('@grafana/grafana-foundation-sdk/table')
const bargauge = require('@grafana/grafana-foundation-sdk/bargauge')
const common = require('@grafana/grafana-foundation-sdk/common')
const { DataqueryBuilder, PromQueryFormat } = require('@grafana/grafana-foundation-sdk/prometheus')

/** The data source that the viewer has chosen. */
const SOURCE = Object.freeze({ type: 'prometheus', uid: '${datasource}' }) // eslint-disable-line no-template-curly-in-string

/**
 * Properties of every panel.
 * @typedef {object} PanelOptions
 * @property {string} title
 * @property {string} description meaning of the panel, and signs of a problem
 * @property {string} unit unit of Grafana: bytes, percentunit, s, short, ops …
 * @property {[expr: string, legend?: string][]} queries
 * @property {[value: number | null, color: string][]} [thresholds] colours by value; default: no
 *   value is bad
 * @property {number} [span] width, in 24ths of the dashboard
 * @property {number} [height]
 * @property {string} [noValue] text of an empty panel: in a healthy process, many panels are empty
 */

/**
 * @param {string} expr
 * @param {string} legend
 * @param {number} i
 * @param {boolean} instant
 */
function query (expr, legend, i, instant) {
  const builder = new DataqueryBuilder()
    .expr(expr)
    .legendFormat(legend)
    .refId(String.fromCharCode(65 + i))
    .datasource(SOURCE)
  return instant ? builder.instant().format(PromQueryFormat.Table) : builder.range()
}

/**
 * @template {{ title: any, description: any, datasource: any, unit: any, span: any, height: any,
 *   thresholds: any, withTarget: any, noValue: any }} Builder
 * @param {Builder} builder
 * @param {PanelOptions} options
 * @param {boolean} [instant]
 * @returns {Builder}
 */
function withCommon (
  builder,
  {
    title,
    description,
    unit,
    queries,
    thresholds = [[null, 'text']],
    span = 12,
    height = 8,
    noValue
  },
  instant = false
) {
  const steps = thresholds.map(([value, color]) => ({ value, color }))
  builder
    .title(title)
    .description(description)
    .datasource(SOURCE)
    .unit(unit)
    .span(span)
    .height(height)
    .thresholds(
      new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(/** @type {any} */ (steps))
    )
  if (noValue) builder.noValue(noValue)
  queries.forEach(([expr, legend = ''], i) => builder.withTarget(query(expr, legend, i, instant)))
  return builder
}

/**
 * Lines over time.
 * @param {PanelOptions & { stacked?: boolean, limits?: string[], right?: { legend: string, unit:
 *   string }, most?: number }} options stacked: true for areas that add up; limits: legends of
 *   lines that are not part of the stack; right: legend of a line with an axis of its own; most:
 *   maximum of the axis
 */
function lines ({ stacked = false, limits = [], right, most, ...options }) {
  const panel = withCommon(new timeseries.PanelBuilder(), options)
    .lineWidth(1)
    .fillOpacity(stacked ? 60 : 10)
    .showPoints(common.VisibilityMode.Never)
    .min(0)
    .legend(
      new common.VizLegendOptionsBuilder()
        .showLegend(true)
        .displayMode(common.LegendDisplayMode.List)
        .placement(common.LegendPlacement.Bottom)
    )
    .tooltip(
      new common.VizTooltipOptionsBuilder()
        .mode(common.TooltipDisplayMode.Multi)
        .sort(common.SortOrder.Descending)
    )
  if (most !== undefined) panel.max(most)
  if (options.thresholds) {
    panel.thresholdsStyle(
      new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.Dashed)
    )
  }
  if (stacked) {
    panel.stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal).group('A'))
  }
  for (const limit of limits) {
    panel.overrideByName(limit, [
      { id: 'custom.stacking', value: { mode: 'none' } },
      { id: 'custom.fillOpacity', value: 0 },
      { id: 'custom.lineWidth', value: 2 },
      {
        id: 'color',
        value: { mode: 'fixed', fixedColor: limit.startsWith('container') ? 'red' : 'orange' }
      }
    ])
  }
  if (right) {
    panel.overrideByName(right.legend, [
      { id: 'unit', value: right.unit },
      { id: 'custom.axisPlacement', value: 'right' },
      { id: 'custom.fillOpacity', value: 0 }
    ])
  }
  return panel
}

/** A panel with one number, and its history in the background. @param {PanelOptions} options */
const number = options =>
  withCommon(new stat.PanelBuilder(), { span: 4, height: 4, ...options })
    .colorMode(
      options.thresholds ? common.BigValueColorMode.Background : common.BigValueColorMode.None
    )
    .graphMode(common.BigValueGraphMode.Area)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']))

/** A panel with bars, the longest first. @param {PanelOptions} options */
const bars = options => withCommon(new bargauge.PanelBuilder(), options)
  .min(0).text(new common.VizTextDisplayOptionsBuilder().titleSize(14).valueSize(18))
  .orientation(common.VizOrientation.Horizontal).displayMode(common.BarGaugeDisplayMode.Basic)
  .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']))

/**
 * A table of present series, with their labels as columns.
 * @param {PanelOptions & { columns: string[], value?: string, widths?: Record<string, number> }}
 *   options columns: shown labels, in this order; value: title of the number, default: no number;
 * widths: widths of columns in pixels
 */
function list ({ columns, value, widths = {}, ...options }) {
  const shown = [...columns, ...(value ? ['Value'] : [])]
  const panel = withCommon(new table.PanelBuilder(), options, true)
    .withTransformation({ id: 'filterFieldsByName', options: { include: { names: shown } } })
    .withTransformation({
      id: 'organize',
      options: {
        indexByName: Object.fromEntries(shown.map((name, i) => [name, i])),
        renameByName: value ? { Value: value } : {}
      }
    })
  for (const [name, width] of Object.entries(widths)) {
    panel.overrideByName(name, [{ id: 'custom.width', value: width }])
  }
  return panel
}

/**
 * A dashboard of rows.
 * @param {object} options
 * @param {string} options.uid
 * @param {string} options.title
 * @param {string} options.description
 * @param {[name: string, query: string][]} options.variables query for all values of a label, in
 *   Grafana's form
 * @param {[title: string, panels: any[]][]} options.rows
 * @param {{ name: string, expr: string, color: string, title: string, text: string, valueIsTime?:
 *   boolean }[]} [options.annotations]
 * @param {string} [options.from]
 */
function dashboard ({
  uid,
  title,
  description,
  variables,
  rows,
  annotations = [],
  from = 'now-1h'
}) {
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(['memwatch', 'nodejs'])
    .readonly()
    .refresh('30s')
    .time({ from, to: 'now' })
    .timezone('browser')
    .tooltip(DashboardCursorSync.Crosshair)
    .link(
      new DashboardLinkBuilder('memwatch')
        .type(DashboardLinkType.Dashboards)
        .tags(['memwatch'])
        .keepTime(true)
        .asDropdown(true)
    )
    .withVariable(
      new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus')
    )
  for (const [name, values] of variables) {
    builder.withVariable(
      new QueryVariableBuilder(name)
        .label(name[0].toUpperCase() + name.slice(1))
        .datasource(SOURCE)
        .query(values)
        .multi(true)
        .includeAll(true)
        .allValue('.+')
        .refresh(VariableRefresh.OnTimeRangeChanged)
    )
  }
  for (const { name, expr, color, title: head, text, valueIsTime } of annotations) {
    const annotation = new AnnotationQueryBuilder()
      .name(name)
      .datasource(SOURCE)
      .enable(true)
      .iconColor(color)
      .expr(expr)
      .titleFormat(head)
      .textFormat(text)
    builder.annotation(valueIsTime ? annotation.useValueForTime(true) : annotation)
  }
  for (const [head, panels] of rows) {
    builder.withRow(new RowBuilder(head))
    for (const panel of panels) builder.withPanel(panel)
  }
  return builder.build()
}

module.exports = { dashboard, lines, number, bars, list }
