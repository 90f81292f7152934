import { colour, h, setText } from './dom.mjs'
import { drawMarks } from './draw-marks.mjs'
import { formatValue } from './format.mjs'

/** @type {typeof import('uplot')} a script of its own: it is no module that browsers know */
const Plot = /** @type {any} */ (globalThis).uPlot
/**
 * @typedef {import('uplot')} PlotView
 * @typedef {import('./charts.mjs').Chart} Chart
 * @typedef {import('./history.mjs').History} History
 */

/**
 * Marks over a chart.
 * @typedef {object} Mark
 * @property {'level' | 'line' | 'moment'} as a level right across, a line between two points, a
 *   moment from top to bottom
 * @property {string} label
 * @property {string} colour a custom property of page.css
 * @property {string} [scale]
 * @property {number[]} at level: [value]; line: [time, value, time, value]; moment: [time]
 */

const HEIGHT = 200
/** Steps of an axis of bytes. */
const BINARY_STEPS = Array.from({ length: 31 }, (_, i) => 2 ** (10 + i))
/**
 * A level that is further above all that is drawn would flatten it: it is named at the top instead.
 */
const FAR_ABOVE = 3
/** For the words of the highest level. */
const ROOM_ABOVE = 1.15

/**
 * One chart: a figure with a heading, a legend of the newest values (or those under the pointer),
 * and what the evidence says.
 */
export class ChartView {
  #chart
  #legend
  #caption
  #canvas
  /** @type {PlotView | undefined} */
  #plot
  /** @type {Mark[]} */
  #marks = []
  /** @type {number[]} times of major GCs */
  #gcTimes = []
  /** The values themselves, not as stacked, series by series. @type {(number | null)[][]} */
  #values = []
  /**
   * Row of the values for each row of the plot: there are empty ones between.
   * @type {(number | undefined)[]}
   */
  #rows = []

  /** @param {Chart} chart */
  constructor (chart) {
    this.#chart = chart
    this.#legend = h('ul', { class: 'legend' })
    this.#caption = h('ul', { class: 'evidence' })
    this.#canvas = h('div', { class: 'canvas', role: 'img', 'aria-label': chart.title })
    this.element = h(
      'figure',
      { class: 'chart', id: `chart-${chart.id}` },
      h('figcaption', {}, h('h3', {}, chart.title), h('p', { class: 'help' }, chart.help)),
      this.#canvas,
      this.#legend,
      this.#caption
    )
  }

  /**
   * @param {Mark[]} marks
   * @param {string[]} evidence sentences that this chart shows
   */
  mark (marks, evidence) {
    if (JSON.stringify(marks) !== JSON.stringify(this.#marks)) {
      this.#marks = marks
      this.#plot?.redraw(false, true)
    }
    if (this.#caption.textContent !== evidence.join('')) {
      this.#caption.replaceChildren(...evidence.map(sentence => h('li', {}, sentence)))
    }
  }

  /** @param {History} history */
  show (history) {
    const { draws, stacked = false, gcMarks = false } = this.#chart
    this.#values = draws.map(({ read }) => history.map(row => read(row)))
    this.#gcTimes = gcMarks
      ? history.times.filter(
        (_, i) =>
          i > 0 &&
            (history.row(i).last('liveHeapMajors') ?? 0) >
              (history.row(i - 1).last('liveHeapMajors') ?? Infinity)
      )
      : []
    const { times, columns, rows } = withGaps(history, stacked ? stack(this.#values) : this.#values)
    this.#rows = rows
    // The topmost area is drawn first: each covers the foot of the one before.
    const data = /** @type {any} */ ([times, ...(stacked ? columns.toReversed() : columns)])
    if (this.#plot) {
      const from = history.times[0]
      const to = history.lastTime
      this.#plot.batch(() => {
        this.#plot?.setData(data, false)
        if (from !== undefined && to !== undefined) {
          this.#plot?.setScale('x', { min: from, max: to })
        }
      })
    } else if (times.length > 0) {
      this.#draw(data)
    }
    this.#tell()
  }

  /** Anew: colours or width changed. */
  redraw () {
    if (!this.#plot) return
    const { data } = this.#plot
    this.remove()
    this.#draw(data)
  }

  resize () {
    this.#plot?.setSize({ width: this.#canvas.clientWidth, height: HEIGHT })
  }

  remove () {
    this.#plot?.destroy()
    this.#plot = undefined
  }

  /** @param {any} data */
  #draw (data) {
    const { draws, unit, rightUnit, stacked = false } = this.#chart
    const ink = colour('--ink')
    const grid = { stroke: colour('--rule'), width: 1 }
    const axis = (/** @type {string} */ scale, /** @type {string} */ of, /** @type {number} */ side) => ({ scale, side, stroke: ink, grid: side === 3 ? grid : { show: false }, ticks: grid, size: 70, ...(of === 'bytes' && { incrs: BINARY_STEPS }), values: (/** @type {PlotView} */ _, /** @type {number[]} */ ticks) => ticks.map(tick => formatValue(tick, of)) })
    const series = draws.map(({ label, colour: name, scale = 'y' }) => ({
      label,
      scale,
      stroke: colour(name),
      width: 1.5,
      fill: stacked ? colour(name) : undefined,
      points: { show: false },
      spanGaps: false
    }))
    this.#plot = new Plot(
      {
        width: this.#canvas.clientWidth || 600,
        height: HEIGHT,
        legend: { show: false },
        cursor: { sync: { key: 'memwatch' }, y: false, drag: { x: false, y: false } },
        scales: {
          x: { time: true },
          y: { range: (_, __, most) => this.#range(most, 'y') },
          ...(rightUnit && {
            right: {
              range: (
                /** @type {PlotView} */ _,
                /** @type {number} */ __,
                /** @type {number} */ most
              ) => this.#range(most, 'right')
            }
          })
        },
        axes: [
          { stroke: ink, grid, ticks: grid, space: 90, values: timesOf },
          axis('y', unit, 3),
          ...(rightUnit ? [axis('right', rightUnit, 1)] : [])
        ],
        series: [{}, ...(stacked ? series.toReversed() : series)],
        hooks: {
          draw: [plot => drawMarks(plot, this.#marks, this.#gcTimes)],
          setCursor: [() => this.#tell()]
        }
      },
      data,
      this.#canvas
    )
  }

  /**
   * From nothing to the most that is drawn, or a level that is not too far above.
   * @param {number | null} most
   * @param {string} scale
   * @returns {[number, number]}
   */
  #range (most, scale) {
    const highest = most ?? 0
    const levels = this.#marks
      .filter(
        ({ as, scale: of = 'y', at }) =>
          as === 'level' && of === scale && (highest === 0 || at[0] <= FAR_ABOVE * highest)
      )
      .map(({ at }) => at[0])
    return [0, ROOM_ABOVE * Math.max(highest, ...levels) || 1]
  }

  /** Values under the pointer, else the newest. */
  #tell () {
    const { draws, unit, rightUnit, title } = this.#chart
    const pointed = this.#plot?.cursor.idx
    const at = this.#rows[pointed ?? -1] ?? (this.#values[0]?.length ?? 0) - 1
    const shown = draws.map(({ label, colour, scale }, i) => ({
      label,
      colour,
      value: this.#values[i]?.[at] ?? null,
      unit: (scale === 'right' ? rightUnit : unit) ?? unit
    }))
    const parts = shown.map(
      ({ label, value, unit }) => `${label} ${value === null ? '–' : formatValue(value, unit)}`
    )
    if (this.#legend.childElementCount !== shown.length) {
      this.#legend.replaceChildren(
        ...shown.map(({ colour }) =>
          h('li', {}, h('span', { class: `swatch ${colour.slice(2)}` }), h('span', {}))
        )
      )
    }
    parts.forEach((part, i) => setText(/** @type {Element} */ (this.#legend.children[i].lastElementChild), part))
    this.#canvas.setAttribute('aria-label', `${title}: ${parts.join(', ')}`)
  }
}

/**
 * @param {PlotView} plot
 * @param {number[]} ticks seconds since 1970
 */
function timesOf ({ scales: { x: { min = 0, max = 0 } } }, ticks) {
  const span = Number(max) - Number(min)
  /** @type {Intl.DateTimeFormatOptions} */
  const form =
    span > 172_800
      ? { month: 'short', day: 'numeric', hour: '2-digit' }
      : { hour: '2-digit', minute: '2-digit', ...(span < 1200 && { second: '2-digit' }) }
  const format = new Intl.DateTimeFormat(undefined, { ...form, hourCycle: 'h23' })
  return ticks.map(tick => format.format(1000 * tick))
}

/** Each column on top of those before. @param {(number | null)[][]} columns */
function stack (columns) {
  const sum = columns[0]?.map(() => 0) ?? []
  return columns.map(column => column.map((value, i) => {
    if (value === null) return null
    sum[i] += value
    return sum[i]
  }))
}

/**
 * With an empty row where nothing was heard for longer than a step.
 * @param {History} history
 * @param {(number | null)[][]} columns
 */
function withGaps (history, columns) {
  /** @type {number[]} */
  const times = []
  /** @type {(number | undefined)[]} */
  const rows = []
  const out = columns.map(() => /** @type {(number | null)[]} */ ([]))
  history.times.forEach((time, i) => {
    if (history.isAfterGap(i)) {
      times.push(history.times[i - 1] + history.stepSeconds)
      rows.push(undefined)
      for (const column of out) column.push(null)
    }
    times.push(time)
    rows.push(i)
    columns.forEach((column, c) => out[c].push(column[i]))
  })
  return { times, columns: out, rows }
}
