// Draws one dashboard with Grafana's own components, from the answers of a Prometheus. draw.js
// stores them in window.DRAWING:
// { dashboard, from, to (Unix seconds), step, answers: { [panel id]: Answer[] } }.
import React from 'react'
import { createRoot } from 'react-dom/client'
import { initPluginTranslations } from '@grafana/i18n'
import {
  applyFieldOverrides, createTheme, dateTime, DashboardCursorSync, EventBusSrv, FieldConfigOptionsRegistry, FieldType, getFieldDisplayValues, LoadingState, ThemeContext, VizOrientation
} from '@grafana/data'
import { BarGauge, BigValue, GlobalStyles, PanelChrome, PanelContextProvider, Table, TimeSeries, VizRepeater } from '@grafana/ui'

const { dashboard, from, to, step, answers } = window.DRAWING
const theme = createTheme({ colors: { mode: new URLSearchParams(window.location.search).get('theme') ?? 'dark' } })
const timeRange = { from: dateTime(from * 1000), to: dateTime(to * 1000), raw: { from: 'now-5m', to: 'now' } }
const ROW_HEIGHT = 38
const WIDTH = 1600
const same = value => value

/** Replaces each {{label}} in a legend by its value. */
const legendOf = (legend, labels) => legend ? legend.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => labels[name] ?? '') : Object.values(labels).join(' ')

/** Converts the answers of a panel to Grafana's data frames. */
function framesOf (panel) {
  return answers[panel.id].flatMap(({ refId, legend, table, result }) => table
    ? [tableFrame(panel, refId, result)]
    : result.map(({ metric, values }) => {
      const name = legendOf(legend, metric)
      return {
        refId,
        name,
        length: values.length,
        fields: [
          { name: 'Time', type: FieldType.time, config: { interval: step * 1000 }, values: values.map(([time]) => time * 1000) },
          { name: 'Value', type: FieldType.number, labels: metric, config: { displayNameFromDS: name }, values: values.map(([, value]) => Number(value)) }
        ]
      }
    }))
}

/** Applies the two transformations of a table: they select, order and rename its columns. */
function tableFrame ({ transformations }, refId, result) {
  const { include: { names } } = transformations.find(({ id }) => id === 'filterFieldsByName').options
  const { renameByName } = transformations.find(({ id }) => id === 'organize').options
  return {
    refId,
    length: result.length,
    fields: names.map(name => name === 'Value'
      ? { name: renameByName.Value ?? 'Value', type: FieldType.number, config: {}, values: result.map(({ value }) => Number(value[1])) }
      : { name, type: FieldType.string, config: { unit: 'string' }, values: result.map(({ metric }) => metric[name] ?? '') })
  }
}

/**
 * Applies units, thresholds and overrides to the frames of a panel. It also sets the defaults that
 * Grafana's core would set.
 */
function dressed (panel) {
  const { defaults, overrides } = panel.fieldConfig
  for (const step of defaults.thresholds.steps) step.value ??= -Infinity
  defaults.color ??= { mode: panel.type === 'timeseries' ? 'palette-classic' : 'thresholds' }
  defaults.mappings ??= []
  if (panel.type === 'timeseries') {
    defaults.custom = {
      drawStyle: 'line',
      lineInterpolation: 'linear',
      gradientMode: 'none',
      pointSize: 5,
      spanNulls: false,
      axisPlacement: 'auto',
      axisLabel: '',
      scaleDistribution: { type: 'linear' },
      hideFrom: { tooltip: false, viz: false, legend: false },
      thresholdsStyle: { mode: 'off' },
      stacking: { mode: 'none', group: 'A' },
      ...defaults.custom
    }
  }
  const registry = new FieldConfigOptionsRegistry()
  const register = (id, path, isCustom) => registry.register({ id, path, isCustom, name: id, editor: () => null, override: () => null, process: same, shouldApply: () => true, settings: {} })
  for (const id of ['unit', 'min', 'max', 'decimals', 'displayName', 'noValue', 'color', 'mappings', 'thresholds', 'links', 'fieldMinMax', 'description', 'filterable']) register(id, id, false)
  const custom = new Set([...Object.keys(defaults.custom ?? {}), ...overrides.flatMap(({ properties }) => properties.map(({ id }) => id)).filter(id => id.startsWith('custom.')).map(id => id.slice(7))])
  for (const id of custom) register(`custom.${id}`, id, true)
  return applyFieldOverrides({ data: framesOf(panel), fieldConfig: panel.fieldConfig, fieldConfigRegistry: registry, replaceVariables: same, theme, timeZone: 'utc' })
}

function Body ({ panel, width, height }) {
  const frames = dressed(panel)
  const { options = {}, fieldConfig, type } = panel
  if (!frames.some(({ length }) => length > 0)) {
    return <div data-nothing={panel.title} style={{ display: 'grid', placeItems: 'center', width, height, color: theme.colors.text.secondary, fontSize: type === 'stat' ? 28 : 14 }}>{fieldConfig.defaults.noValue ?? 'No data'}</div>
  }
  if (type === 'timeseries') return <TimeSeries frames={frames} structureRev={1} timeRange={timeRange} timeZone='utc' width={width} height={height} legend={{ calcs: [], ...options.legend }} options={options} replaceVariables={same} />
  if (type === 'table') return <Table data={frames[0]} width={width} height={height} />
  const values = getFieldDisplayValues({ fieldConfig, reduceOptions: { values: false, ...options.reduceOptions }, replaceVariables: same, theme, data: frames, sparkline: options.graphMode === 'area', timeZone: 'utc' })
  if (type === 'bargauge') values.sort((a, b) => b.display.numeric - a.display.numeric)
  const draw = type === 'stat'
    ? ({ value, width, height, count }) => <BigValue value={{ ...value.display, title: count > 1 ? value.display.title : undefined }} sparkline={value.sparkline} width={width} height={height} theme={theme} colorMode={options.colorMode} graphMode={options.graphMode} justifyMode='auto' textMode='auto' count={count} />
    : ({ value, width, height }) => <BarGauge value={value.display} field={value.field} width={width} height={height} theme={theme} orientation={VizOrientation.Horizontal} displayMode={options.displayMode} text={options.text} />
  if (type === 'stat' || type === 'bargauge') return <VizRepeater source={values} getValues={() => values} width={width} height={height} orientation={type === 'stat' ? VizOrientation.Auto : VizOrientation.Horizontal} itemSpacing={8} minVizHeight={16} renderCounter={1} renderValue={draw} />
  throw new Error(`${panel.title}: a panel of type ${type} cannot be drawn here`)
}

function Dashboard () {
  const place = ({ x, y, w, h }) => ({ position: 'absolute', left: x * WIDTH / 24 + 4, top: y * ROW_HEIGHT + 4, width: w * WIDTH / 24 - 8, height: h * ROW_HEIGHT - 8 })
  const context = { eventsScope: 'global', eventBus: new EventBusSrv(), sync: () => DashboardCursorSync.Off, app: 'dashboard' }
  return (
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <PanelContextProvider value={context}>
        <div style={{ position: 'relative', width: WIDTH, height: Math.max(...dashboard.panels.map(({ gridPos: { y, h } }) => (y + h) * ROW_HEIGHT)) + 12, background: theme.colors.background.canvas }}>
          {dashboard.panels.map(panel => {
            const { width, height } = place(panel.gridPos)
            return (
              <div key={panel.id} style={place(panel.gridPos)}>
                {panel.type === 'row'
                  ? <h4 style={{ margin: 6 }}>{panel.title}</h4>
                  : <PanelChrome title={panel.title} description={panel.description} width={width} height={height} padding={panel.type === 'stat' ? 'none' : 'md'} loadingState={LoadingState.Done}>{(width, height) => <Body panel={panel} width={width} height={height} />}</PanelChrome>}
              </div>
            )
          })}
        </div>
      </PanelContextProvider>
    </ThemeContext.Provider>
  )
}

initPluginTranslations('memwatch').finally(() => {
  createRoot(document.getElementById('root')).render(<Dashboard />)
})
