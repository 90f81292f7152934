import Plot from 'uplot'
import { colour, h, setText } from './dom.mjs'
import { BAND_HEIGHT, LANE_HEIGHT, drawFoot, drawMarks } from './draw-marks.mjs'
import { formatValue } from '@memwatch/engine/text/format'

/**
 * @typedef {import('uplot')} PlotView
 * @typedef {import('./charts.mjs').Chart} Chart
 * @typedef {import('./history.mjs').History} History
 * @typedef {import('./draw-marks.mjs').Life} Life
 */

/**
 * A mark over a chart.
 * @typedef {object} Mark
 * @property {'level' | 'line'} as a horizontal level, or a line between two points
 * @property {string} label
 * @property {string} colour a custom property of page.css
 * @property {string} [scale]
 * @property {number[]} at level: [value]; line: [time, value, time, value]
 *
 * @typedef {object} Label a label in the gutter
 * @property {string} text
 * @property {string} swatch class of page.css
 * @property {number} y CSS pixels from the top
 */

/** Height of the plot with its time axis, in CSS pixels. */
const HEIGHT = 200
const TOP_PADDING = 10
/** Width of the left axis, equal for all charts, so that their times are aligned. */
const AXIS_WIDTH = 70
/**
 * Width of the labels beside a chart, and chart width below which the labels are under the chart.
 */
const GUTTER_WIDTH = 196
const NARROW_BELOW = 460
const LABEL_HEIGHT = 16
/** Steps of an axis of bytes. */
const BINARY_STEPS = Array.from({ length: 31 }, (_, i) => 2 ** (10 + i))
/**
 * Largest ratio of a level to the series: a higher level would flatten the series, so only its
 * label is shown, at the top.
 */
const FAR_ABOVE = 3
const ROOM_ABOVE = 1.05
/** @type {Life} */
const NO_LIFE = { states: [], events: [] }
/** Lanes of GCs, by the counter of each kind. */
const GC_LANES = /** @type {const} */ ([
  ['scavenges', 'scavenges', '--green'],
  ['ordinaryMajors', 'major', '--blue'],
  ['externalMajors', 'major, for Buffers', '--orange']
])

/**
 * One chart: a figure with a heading. Each series has a label beside its right end, with its newest
 * value or the value under the pointer. Series without values are not drawn.
 */
export class ChartView {
  #chart
  #labels = h('ul', { class: 'legend' })
  #canvas
  #frame
  /** @type {PlotView | undefined} */
  #plot
  /** @type {Mark[]} */
  #marks = []
  #life = NO_LIFE
  /** @type {import('./draw-marks.mjs').Lane[]} */
  #lanes = []
  /** @type {readonly number[]} */
  #times = []
  /** Series that have values. @type {Chart['draws']} */
  #draws = []
  /** Values before stacking, series by series. @type {(number | null)[][]} */
  #values = []
  /** Values as drawn, stacked. @type {(number | null)[][]} */
  #columns = []
  /**
   * Row of the values for each row of the plot, which also has empty rows.
   * @type {(number | undefined)[]}
   */
  #rows = []
  #isChosen = true

  /** @param {Chart} chart */
  constructor (chart) {
    this.#chart = chart
    this.#canvas = h('div', { class: 'canvas', role: 'img', 'aria-label': chart.title })
    this.#frame = h('div', { class: 'plot' }, this.#canvas, this.#labels)
    this.element = h(
      'figure',
      { class: 'chart', id: `chart-${chart.id}`, hidden: true },
      h('figcaption', {}, h('h3', {}, chart.title), h('p', { class: 'help' }, chart.help)),
      this.#frame
    )
  }

  /**
   * @param {Mark[]} marks
   * @param {Life} [life]
   */
  mark (marks, life = NO_LIFE) {
    if (JSON.stringify([marks, life]) === JSON.stringify([this.#marks, this.#life])) return
    this.#marks = marks
    this.#life = life
    this.#plot?.redraw(false, true)
  }

  /** @param {boolean} isChosen true to show the chart if it has values */
  choose (isChosen) {
    this.#isChosen = isChosen
    this.element.hidden = !isChosen || this.#draws.length === 0
    this.resize()
  }

  /** @param {History} history */
  show (history) {
    const { draws, stacked = false, gcMarks = false } = this.#chart
    const all = draws.map(({ read }) => history.map(row => read(row)))
    const shown = draws.filter((_, i) => all[i].some(Boolean))
    if (shown.map(({ label }) => label).join() !== this.#draws.map(({ label }) => label).join()) {
      this.remove()
    }
    this.#draws = shown
    this.#values = all.filter((_, i) => shown.includes(draws[i]))
    this.element.hidden = shown.length === 0 || !this.#isChosen
    if (shown.length === 0) return
    this.#times = history.times
    this.#lanes = gcMarks ? lanesOf(history) : []
    this.#columns = stacked ? stack(this.#values) : this.#values
    const { times, columns, rows } = withGaps(history, this.#columns)
    this.#rows = rows
    // The topmost area is drawn first, as each area covers the lower part of the previous one.
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
    } else if (times.length > 0 && !this.element.hidden) {
      this.#draw(data)
    }
  }

  /** Draws the chart again, after a change of colours or width. */
  redraw () {
    if (!this.#plot) return
    const { data } = this.#plot
    this.remove()
    this.#draw(data)
  }

  resize () {
    if (!this.element.hidden && this.#plot?.width !== this.#canvas.clientWidth) this.redraw()
  }

  remove () {
    this.#plot?.destroy()
    this.#plot = undefined
  }

  /** @param {any} data */
  #draw (data) {
    const { unit, stacked = false, rightUnit } = this.#chart
    const ink = colour('--ink')
    const grid = { stroke: colour('--rule'), width: 1 }
    const isNarrow = this.#frame.clientWidth < NARROW_BELOW
    this.#frame.classList.toggle('narrow', isNarrow)
    const foot = BAND_HEIGHT + LANE_HEIGHT * this.#lanes.length
    const series = this.#draws.map(({ label, colour: name, scale = 'y' }) => ({
      label,
      scale,
      stroke: colour(name),
      width: 1.5,
      fill: stacked ? colour(name) : undefined,
      points: { show: false },
      spanGaps: false
    }))
    /** @type {import('uplot').Scale.Range} */
    const range = (_, __, most, scale) => this.#range(most, scale)
    this.#plot = new Plot(
      {
        width: this.#canvas.clientWidth || 600,
        height: HEIGHT + foot,
        padding: [TOP_PADDING, isNarrow ? 8 : GUTTER_WIDTH, foot, 0],
        legend: { show: false },
        cursor: { sync: { key: 'memwatch' }, y: false, drag: { x: false, y: false } },
        scales: { x: { time: true }, y: { range }, ...rightUnit && { right: { range } } },
        axes: [
          { stroke: ink, grid, ticks: grid, space: 90, size: 30, values: timesOf },
          {
            scale: 'y',
            stroke: ink,
            grid,
            ticks: grid,
            size: AXIS_WIDTH,
            ...(unit === 'bytes' && { incrs: BINARY_STEPS }),
            values: (/** @type {PlotView} */ _, /** @type {number[]} */ ticks) =>
              ticks.map(tick => formatValue(tick, unit))
          }
        ],
        series: [{}, ...(stacked ? series.toReversed() : series)],
        hooks: {
          draw: [plot => {
            drawMarks(plot, this.#marks)
            drawFoot(plot, { lanes: this.#lanes, times: this.#times, life: this.#life })
            this.#label(plot)
          }],
          setCursor: [plot => this.#label(plot)]
        }
      },
      data,
      this.#canvas
    )
  }

  /**
   * Range of the axis: from 0 to the largest value, or to a level that is not too far above it.
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

  /**
   * Draws the labels beside the right ends: values under the pointer, otherwise the newest values,
   * and the marks.
   * @param {PlotView} plot
   */
  #label (plot) {
    const { unit, rightUnit, stacked, title } = this.#chart
    const newest = (this.#values[0]?.length ?? 0) - 1
    const at = this.#rows[plot.cursor.idx ?? -1] ?? newest
    const top = plot.bbox.top / devicePixelRatio
    const height = plot.bbox.height / devicePixelRatio
    const yOf = (/** @type {number} */ value, /** @type {string} */ scale) =>
      top + Math.max(0, Math.min(height, plot.valToPos(value, scale)))
    const series = this.#draws.map(({ label, colour: name, scale = 'y' }, i) => {
      const value = this.#values[i][at] ?? null
      const end = this.#columns[i].findLast(known => known !== null) ?? 0
      const foot = stacked ? end - (this.#values[i].findLast(known => known !== null) ?? 0) : end
      const of = (scale === 'right' ? rightUnit : unit) ?? unit
      return {
        text: `${label} ${value === null ? '–' : formatValue(value, of)}`,
        swatch: name.slice(2),
        y: yOf((end + foot) / 2, scale)
      }
    })
    const marks = this.#marks.map(({ as, label, colour: name, scale = 'y', at }) => {
      const value = as === 'line' ? at[3] : at[0]
      const isAbove = plot.valToPos(value, scale) < 0
      return {
        text: isAbove ? `↑ ${label}` : label,
        swatch: `dashed ${name.slice(2)}`,
        y: yOf(value, scale)
      }
    })
    const labels = [...series, ...marks]
    this.#labels.replaceChildren(...Array.from(labels, (_, i) =>
      this.#labels.children[i] ?? h('li', {}, h('span', {}), h('span', {}))))
    const tops = spread(labels.map(({ y }) => y - LABEL_HEIGHT / 2), HEIGHT)
    labels.forEach(({ text, swatch }, i) => {
      const item = /** @type {HTMLElement} */ (this.#labels.children[i])
      const name = `swatch ${swatch}`
      if (item.children[0].className !== name) item.children[0].className = name
      setText(item.children[1], text)
      item.style.top = `${tops[i]}px`
    })
    const words = series.map(({ text }) => text).join(', ')
    this.#canvas.setAttribute('aria-label', `${title}: ${words}`)
  }
}

/**
 * Positions of labels beside a chart without overlaps, each as near to its series as possible.
 * @param {number[]} wanted pixels
 * @param {number} most largest position of the last label
 * @returns {number[]}
 */
function spread (wanted, most) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b])
  /** @type {number[]} */
  const places = []
  let free = 0
  for (const i of order) {
    places[i] = Math.max(free, wanted[i])
    free = places[i] + LABEL_HEIGHT
  }
  let limit = most
  for (const i of order.reverse()) {
    limit = Math.min(limit, places[i] + LABEL_HEIGHT) - LABEL_HEIGHT
    places[i] = limit
  }
  return places.map(place => Math.round(Math.max(0, place)))
}

/** @param {History} history */
function lanesOf (history) {
  return GC_LANES.flatMap(([track, label, name]) => {
    const counts = history.map((row, i) =>
      (row.rate(track) ?? 0) * (i > 0 ? history.times[i] - history.times[i - 1] : 0))
    return counts.some(Boolean) ? [{ label, colour: name, counts }] : []
  })
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

/** Stacks each column on the previous ones. @param {(number | null)[][]} columns */
function stack (columns) {
  const sum = columns[0]?.map(() => 0) ?? []
  return columns.map(column => column.map((value, i) => {
    if (value === null) return null
    sum[i] += value
    return sum[i]
  }))
}

/**
 * Adds an empty row at each gap in the history, so that no line crosses it.
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
