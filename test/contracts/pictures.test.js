'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { diagnoses } = require('../../engine/diagnoses')
const { terminalSvg, screensOf } = require('../../scripts/pictures/terminal-svg')
const { charts } = require('../../scripts/page-charts')
const { hashText, styleHash } = require('../../scripts/pictures/page-hashes')
const { readText } = require('../support/repository-files')

const SIZE = { columns: 20, rows: 3 }
const texts = svg => [...svg.matchAll(/<text.*<\/text>/g)].map(([text]) => text.replace(/<[^>]*>/g, ''))

describe('a recorded terminal', () => {
  it('has a screen for each output that changes it', async () => {
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

  it('draws a row once while it is unchanged, in its colours, and escapes markup', async () => {
    const svg = await terminalSvg([
      { atSeconds: 0, data: '\x1b[31m<b>&\x1b[0m\r\n' },
      { atSeconds: 5, data: 'end' }
    ], { ...SIZE, title: 'a "picture"', holdSeconds: 5 })
    expect(texts(svg)).toEqual(['&lt;b&gt;&amp;', 'end'])
    expect(svg).toContain('fill="#f14c4c"')
    expect(svg).toContain('0%{visibility:hidden}50%{visibility:visible}')
    expect(svg).not.toContain('"picture"')
  })

  it('shows the newest rows if more were written than fit', async () => {
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

describe('the pictures of the page', () => {
  const folder = path.join(__dirname, '../../docs/page')
  const page = path.join(__dirname, '../../exporter/page')
  const { styleSha256, pictures } = JSON.parse(readText('docs/page/pictures.json'))
  const redraw = 'npm run pictures redraws them'

  it('are the output of npm run pictures, in light and dark', () => {
    const drawn = fs.readdirSync(folder).filter(name => name.endsWith('.png'))
    expect(pictures.map(({ file }) => file).toSorted()).toEqual(drawn.toSorted())
    for (const { file, sha256 } of pictures) {
      expect([file, hashText(fs.readFileSync(path.join(folder, file)))]).toEqual([file, sha256])
      expect(drawn).toEqual(expect.arrayContaining(
        ['light', 'dark'].map(scheme => file.replace(/light|dark/, scheme))))
    }
  })

  it('have the style of the page, and only existing headings', () => {
    expect([redraw, styleSha256]).toEqual([redraw, styleHash()])
    const source = fs.readdirSync(page).filter(name => /\.(mjs|html)$/.test(name))
      .map(name => fs.readFileSync(path.join(page, name), 'utf8')).join()
    const gone = pictures.flatMap(({ headings }) => headings)
      .filter(heading => ![source, ...charts.map(({ title }) => title)]
        .some(text => text.includes(heading)))
    expect([redraw, gone]).toEqual([redraw, []])
    expect(pictures.find(({ file }) => file === 'target-light.png').headings).toContain('Why')
  })
})
