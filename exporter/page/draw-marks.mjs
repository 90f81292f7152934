import { colour } from './dom.mjs'

/**
 * @typedef {import('uplot')} PlotView
 * @typedef {import('./chart.mjs').Mark} Mark
 *
 * @typedef {object} Life states and events of a target, the same under every chart
 * @property {readonly { from: number, state: string }[]} states states in order, each until the
 *   next one; times in seconds since 1970
 * @property {readonly { time: number, symbol: string }[]} events captures and deaths
 *
 * @typedef {{ label: string, colour: string, counts: (number | null)[] }} Lane number of GCs of one
 *   kind in each step
 */

/** Height of the band of states, and of a lane of GCs, in CSS pixels. */
export const BAND_HEIGHT = 12
export const LANE_HEIGHT = 9
/** Colour of each state in the band. */
const STATE_COLOURS = /** @type {Record<string, string>} */ ({
  unknown: '--rule', ok: '--green', suspected: '--orange', confirmed: '--red'
})

/**
 * Draws levels and lines of growth on the canvas of a chart, which has `devicePixelRatio` pixels
 * for each CSS pixel. Labels are in the gutter beside the chart, where no line crosses them.
 * @param {PlotView} plot
 * @param {Mark[]} marks
 */
export function drawMarks (plot, marks) {
  const { ctx, bbox: { left, top, width, height } } = plot
  const scaled = devicePixelRatio
  ctx.save()
  ctx.beginPath()
  ctx.rect(left, top, width, height)
  ctx.clip()
  for (const { as, scale = 'y', colour: name, at } of marks) {
    ctx.strokeStyle = colour(name)
    ctx.setLineDash(as === 'line' ? [] : [6 * scaled, 4 * scaled])
    ctx.lineWidth = (as === 'line' ? 2.5 : 1.5) * scaled
    ctx.beginPath()
    const [from, to] = as === 'line'
      ? [[at[0], at[1]], [at[2], at[3]]].map(([time, value]) =>
          [plot.valToPos(time, 'x', true), plot.valToPos(value, scale, true)])
      : [left, left + width].map(x => [x, plot.valToPos(at[0], scale, true)])
    ctx.moveTo(from[0], from[1])
    ctx.lineTo(to[0], to[1])
    ctx.stroke()
  }
  ctx.restore()
}

/**
 * Draws the rows below a chart: lanes of GCs by kind, then the band of states with captures and
 * deaths.
 * @param {PlotView} plot
 * @param {{ lanes: Lane[], times: readonly number[], life: Life }} shown
 */
export function drawFoot (plot, { lanes, times, life }) {
  const { ctx, bbox: { left, top, width }, height } = plot
  const scaled = devicePixelRatio
  const x = (/** @type {number} */ time) =>
    Math.min(left + width, Math.max(left, plot.valToPos(time, 'x', true)))
  let y = scaled * (height - BAND_HEIGHT - LANE_HEIGHT * lanes.length)
  if (y < top) return
  ctx.save()
  ctx.font = `${10 * scaled}px system-ui, sans-serif`
  ctx.textAlign = 'left'
  ctx.textBaseline = 'middle'
  const perRow = width / Math.max(1, times.length)
  for (const { label, colour: name, counts } of lanes) {
    const most = Math.max(...counts.map(count => count ?? 0))
    ctx.fillStyle = colour(name)
    counts.forEach((count, i) => {
      if (!count) return
      ctx.globalAlpha = 0.35 + 0.65 * count / most
      const wide = Math.max(1.5 * scaled, perRow)
      ctx.fillRect(x(times[i]) - wide, y + scaled, wide, (LANE_HEIGHT - 2) * scaled)
    })
    ctx.globalAlpha = 1
    ctx.fillStyle = colour('--quiet')
    ctx.fillText(label, left + width + 8 * scaled, y + LANE_HEIGHT * scaled / 2)
    y += LANE_HEIGHT * scaled
  }
  const last = times[times.length - 1] ?? 0
  life.states.forEach(({ from, state }, i) => {
    const [start, end] = [x(from), x(life.states[i + 1]?.from ?? last)]
    ctx.fillStyle = colour(STATE_COLOURS[state] ?? '--rule')
    ctx.fillRect(start, y + 4 * scaled, Math.max(0, end - start), 4 * scaled)
  })
  ctx.fillStyle = colour('--ink')
  ctx.font = `${12 * scaled}px system-ui, sans-serif`
  ctx.textAlign = 'center'
  for (const { time, symbol } of life.events) {
    if (time >= (times[0] ?? Infinity)) ctx.fillText(symbol, x(time), y + 6 * scaled)
  }
  ctx.restore()
}
