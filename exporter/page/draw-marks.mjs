import { colour } from './dom.mjs'

/**
 * @typedef {import('uplot')} PlotView
 * @typedef {import('./chart.mjs').Mark} Mark
 */

/**
 * Marks over a chart, on its canvas, whose pixels are `devicePixelRatio` to one of CSS.
 * @param {PlotView} plot
 * @param {Mark[]} marks
 * @param {number[]} gcTimes of major GCs, seconds since 1970
 */
export function drawMarks (plot, marks, gcTimes) {
  const { ctx, bbox: { left, top, width, height } } = plot
  const scaled = devicePixelRatio
  ctx.save()
  ctx.beginPath()
  ctx.rect(left, top, width, height)
  ctx.clip()
  ctx.textAlign = 'left'
  ctx.textBaseline = 'alphabetic'
  ctx.font = `${11 * scaled}px system-ui, sans-serif`
  drawGcs(plot, gcTimes)
  /** @type {Placed} */
  const placed = { above: 0, feet: [] }
  for (const mark of marks) {
    const isLine = mark.as === 'line'
    ctx.strokeStyle = ctx.fillStyle = colour(mark.colour)
    ctx.setLineDash(isLine ? [] : [6 * scaled, 4 * scaled])
    ctx.lineWidth = (isLine ? 2.5 : 1.5) * scaled
    ctx.beginPath()
    if (isLine) drawLine(plot, mark)
    else if (mark.as === 'moment') drawMoment(plot, mark)
    else drawLevel(plot, mark, placed)
    ctx.stroke()
  }
  ctx.restore()
}

/**
 * A tick at the foot for each major GC.
 * @param {PlotView} plot
 * @param {number[]} times
 */
function drawGcs ({ ctx, bbox: { top, height }, valToPos }, times) {
  const scaled = devicePixelRatio
  ctx.fillStyle = colour('--ink')
  ctx.globalAlpha = 0.5
  for (const time of times) {
    const x = valToPos(time, 'x', true)
    ctx.fillRect(x - scaled / 2, top + height - 6 * scaled, scaled, 6 * scaled)
  }
  ctx.globalAlpha = 1
}

/**
 * @param {PlotView} plot
 * @param {Mark} mark
 */
function drawMoment ({ ctx, bbox: { left, top, width, height }, valToPos }, { label, at }) {
  const scaled = devicePixelRatio
  const x = valToPos(at[0], 'x', true)
  ctx.moveTo(x, top)
  ctx.lineTo(x, top + height)
  const rightmost = left + width - ctx.measureText(label).width - 4 * scaled
  ctx.fillText(label, Math.min(x + 4 * scaled, rightmost), top + height - 10 * scaled)
}

/**
 * @param {PlotView} plot
 * @param {Mark} mark
 */
function drawLine ({ ctx, bbox: { left, top, width }, valToPos }, { label, scale = 'y', at }) {
  const scaled = devicePixelRatio
  const [fromTime, from, toTime, to] = at
  ctx.moveTo(valToPos(fromTime, 'x', true), valToPos(from, scale, true))
  ctx.lineTo(valToPos(toTime, 'x', true), valToPos(to, scale, true))
  const middle = valToPos(from + 0.5 * (to - from), scale, true)
  ctx.fillText(label, left + 0.3 * width, Math.max(top + 12 * scaled, middle - 8 * scaled))
}

/**
 * Words of levels that stand already: they must not cover each other.
 * @typedef {{ above: number, feet: number[] }} Placed above: number of levels above the chart
 *
 * @param {PlotView} plot
 * @param {Mark} mark
 * @param {Placed} placed
 */
function drawLevel (plot, { label, scale = 'y', at }, placed) {
  const { ctx, bbox: { left, top, width } } = plot
  const scaled = devicePixelRatio
  const y = plot.valToPos(at[0], scale, true)
  const isAbove = y < top
  ctx.moveTo(left, y)
  ctx.lineTo(left + width, y)
  const words = isAbove ? `↑ ${label}` : label
  let foot = isAbove
    ? top + (12 + 13 * placed.above++) * scaled
    : Math.max(top + 11 * scaled, y - 4 * scaled)
  while (placed.feet.some(other => Math.abs(other - foot) < 12 * scaled)) foot += 4 * scaled
  placed.feet.push(foot)
  ctx.fillText(words, left + width - ctx.measureText(words).width - 4 * scaled, foot)
}
