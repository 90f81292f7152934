'use strict'

/**
 * Draws a recorded terminal as an animated SVG. For each content of a row there is one text, which
 * is visible while the row had this content. Readers who prefer reduced motion see the last screen.
 */

const { Terminal } = require('@xterm/headless')

const CELL_WIDTH = 8.4
const LINE_HEIGHT = 19
const PADDING = 16
const FOREGROUND = '#d4d4d4'
/** The sixteen colours of a terminal that memwatch uses. */
const COLOURS = Object.freeze({ 1: '#f14c4c', 2: '#23d18b', 3: '#e5b84b', 6: '#29b8db', 8: '#8a8a8a' })

/**
 * @typedef {{ atSeconds: number, data: string }} Chunk output of a terminal, and the time of the
 *   output
 * @typedef {{ text: string, colour: string, isBold: boolean }} Run characters of one style
 */

/**
 * @param {import('@xterm/headless').Terminal} terminal
 * @param {number} row
 * @returns {Run[]}
 */
function readRow (terminal, row) {
  /** @type {Run[]} */
  const runs = []
  const line = terminal.buffer.active.getLine(terminal.buffer.active.viewportY + row)
  for (let column = 0; column < terminal.cols; column++) {
    const cell = line?.getCell(column)
    if (!cell || cell.getWidth() === 0) continue
    const isDim = cell.isDim() !== 0
    const code = cell.isFgPalette() ? cell.getFgColor() : isDim ? 8 : -1
    const colour = COLOURS[/** @type {keyof COLOURS} */ (code)] ?? FOREGROUND
    const isBold = cell.isBold() !== 0
    const last = runs.at(-1)
    const text = cell.getChars() || ' '
    if (last?.colour === colour && last.isBold === isBold) last.text += text
    else runs.push({ text, colour, isBold })
  }
  const last = runs.at(-1)
  if (last) last.text = last.text.trimEnd()
  return runs.every(({ text }) => text.trim() === '') ? [] : runs
}

/**
 * @param {Chunk[]} chunks chunks in order
 * @param {{ columns: number, rows: number }} size
 * @returns {Promise<{ atSeconds: number, rows: string[] }[]>} each screen that differs from the one
 *   before; a row is the JSON of its runs
 */
async function screensOf (chunks, { columns, rows }) {
  const terminal = new Terminal({ cols: columns, rows, allowProposedApi: true })
  /** @type {{ atSeconds: number, rows: string[] }[]} */
  const screens = []
  for (const { atSeconds, data } of chunks) {
    await new Promise(resolve => terminal.write(data, () => resolve(undefined)))
    const screen = Array.from({ length: rows }, (_, row) => JSON.stringify(readRow(terminal, row)))
    if (screen.join() !== screens.at(-1)?.rows.join()) screens.push({ atSeconds, rows: screen })
  }
  return screens
}

const escape = (/** @type {string} */ text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')

/**
 * @param {string} row JSON of its runs
 * @param {number} y
 * @param {string} attributes
 */
function drawRow (row, y, attributes) {
  const spans = JSON.parse(row).map((/** @type {Run} */ { text, colour, isBold }) =>
    `<tspan${colour === FOREGROUND ? '' : ` fill="${colour}"`}` +
    `${isBold ? ' font-weight="bold"' : ''}>${escape(text)}</tspan>`)
  return `<text x="${PADDING}" y="${y}" ${attributes}>${spans.join('')}</text>`
}

/**
 * @param {Chunk[]} chunks chunks in order
 * @param {object} options
 * @param {number} options.columns
 * @param {number} options.rows
 * @param {string} options.title description for screen readers
 * @param {number} options.holdSeconds time of the last screen before the picture starts over
 * @returns {Promise<string>} SVG
 */
async function terminalSvg (chunks, { columns, rows, title, holdSeconds }) {
  const screens = await screensOf(chunks, { columns, rows })
  const length = (screens.at(-1)?.atSeconds ?? 0) + holdSeconds
  const percent = (/** @type {number} */ atSeconds) => Number((100 * atSeconds / length).toFixed(2))
  /** @type {Map<string, number>} numbers of animations, by their keyframes */
  const animations = new Map()
  const texts = []
  for (let row = 0; row < rows; row++) {
    for (let from = 0, to; from < screens.length; from = to) {
      to = from + 1
      while (to < screens.length && screens[to].rows[row] === screens[from].rows[row]) to++
      if (screens[from].rows[row] === '[]') continue
      const isLast = to === screens.length
      const start = percent(screens[from].atSeconds)
      const end = isLast ? 100 : percent(screens[to].atSeconds)
      const frames = `0%{visibility:hidden}${start}%{visibility:visible}` +
        `${isLast ? '' : `${end}%{visibility:hidden}`}`
      const number = animations.get(frames) ?? animations.set(frames, animations.size).size - 1
      texts.push(drawRow(screens[from].rows[row], PADDING + LINE_HEIGHT * (row + 0.75),
        `class="${isLast ? 'l' : 't'}" style="animation-name:k${number}"`))
    }
  }
  const width = Math.ceil(columns * CELL_WIDTH + 2 * PADDING)
  const height = Math.ceil(rows * LINE_HEIGHT + 2 * PADDING)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" ` +
      `height="${height}" role="img" aria-label="${escape(title)}">`,
    `<title>${escape(title)}</title>`,
    '<style>',
    'text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;' +
      `fill:${FOREGROUND};white-space:pre;animation:${length.toFixed(2)}s step-end infinite}`,
    ...[...animations].map(([frames, number]) => `@keyframes k${number}{${frames}}`),
    '@media (prefers-reduced-motion:reduce){text{animation:none}.t{visibility:hidden}}',
    '</style>',
    `<rect width="${width}" height="${height}" rx="8" fill="#1e1e1e"/>`,
    ...texts,
    '</svg>\n'
  ].join('\n')
}

module.exports = { terminalSvg, screensOf }
