'use strict'

const { diagnoses } = require('../../engine/diagnoses')
const { terminalSvg, screensOf } = require('../../scripts/pictures/terminal-svg')
const { readText } = require('../support/repository-files')

const SIZE = { columns: 20, rows: 3 }
const texts = svg => [...svg.matchAll(/<text.*<\/text>/g)].map(([text]) => text.replace(/<[^>]*>/g, ''))

describe('a recorded terminal', () => {
  it('has a screen for each output that shows', async () => {
    const screens = await screensOf([
      { atSeconds: 0, data: '$ run\r\n' },
      { atSeconds: 1, data: 'RSS 1' },
      { atSeconds: 2, data: '\r\x1b[2KRSS 2' },
      { atSeconds: 3, data: '\x1b[0m' }
    ], SIZE)
    const lines = screens.map(({ rows }) =>
      rows.map(row => JSON.parse(row).map(({ text }) => text).join('')))
    expect(lines).toEqual([['$ run', '', ''], ['$ run', 'RSS 1', ''], ['$ run', 'RSS 2', '']])
  })

  it('draws a row once for as long as it stands, in its colours, and nothing as markup', async () => {
    const svg = await terminalSvg([
      { atSeconds: 0, data: '\x1b[31m<b>&\x1b[0m\r\n' },
      { atSeconds: 5, data: 'end' }
    ], { ...SIZE, title: 'a "picture"', holdSeconds: 5 })
    expect(texts(svg)).toEqual(['&lt;b&gt;&amp;', 'end'])
    expect(svg).toContain('fill="#f14c4c"')
    expect(svg).toContain('0%{visibility:hidden}50%{visibility:visible}')
    expect(svg).not.toContain('"picture"')
  })

  it('shows the newest rows where more were written than fit', async () => {
    const screens = await screensOf([{ atSeconds: 0, data: '1\r\n2\r\n3\r\n4' }], SIZE)
    expect(screens[0].rows.map(row => JSON.parse(row)[0].text)).toEqual(['2', '3', '4'])
  })
})

it('the picture of README ends with a confirmed finding, its fix and its runbook', () => {
  const file = 'docs/pictures/run.svg'
  expect(readText('README.md')).toContain(`](${file})`)
  const last = readText(file).match(/<text[^>]*class="l".*/g)?.join('').replace(/<[^>]*>/g, '') ?? ''
  const shown = diagnoses.filter(({ id }) => last.includes(`Confirmed: ${id}`))
  expect(shown).toHaveLength(1)
  expect(last).toContain(`${shown[0].runbook}.md`)
  expect(last).toContain('--max-semi-space-size=')
})
