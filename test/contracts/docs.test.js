'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { program } = require('../../cli/memwatch')
const { annotation } = require('../../exporter/attachment/annotation')
const { options, clientOptions } = require('../../exporter/config')
const { options: agentOptions } = require('@memwatch/agent/protocol/config')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { diagnoses } = require('../../engine/diagnoses')
const { scripts } = require('../../package.json')
const { ROOT, listFiles, readText } = require('../support/repository-files')

const pages = listFiles('*.md')
const textOf = readText
/** Page that is generated from the commands; its examples contain flags of Node.js. */
const COMMANDS_PAGE = 'docs/commands.md'
/**
 * Anchors of a page, formed as by GitHub.
 * @param {string} page
 * @returns {string[]}
 */
const anchorsOf = page =>
  [...textOf(page).matchAll(/^#+ (.*)$/gm)]
    .map(([, title]) =>
      title
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .trim()
        .replaceAll(' ', '-')
    )
    .concat([...textOf(page).matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, name]) => name))

describe.each(pages)('%s', page => {
  const text = textOf(page)

  it('has no dead link', () => {
    const links = [
      ...text.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g),
      ...text.matchAll(/^\[[^\]]+\]: (?!https?:)([^#\s]*)(?:#(\S*))?$/gm)
    ].map(
      ([, file, anchor]) => ({
        file: path.join(path.dirname(page), file),
        anchor,
        own: file === ''
      })
    )
    const broken = links.filter(({ file, anchor, own }) => {
      const to = own ? page : file
      return (
        !fs.existsSync(path.join(ROOT, to)) ||
        (anchor !== undefined && to.endsWith('.md') && !anchorsOf(to).includes(anchor))
      )
    })
    expect(broken).toEqual([])
  })

  it('names only existing variables, scripts and diagnoses', () => {
    const known = [options, agentOptions, clientOptions, { annotation }]
      .flatMap(table => Object.values(table))
      .map(({ env }) => env)
    expect(
      [...text.matchAll(/\bMEMWATCH_[A-Z_]+\b/g)]
        .map(([name]) => name)
        .filter(name => !known.includes(name) && !name.endsWith('_'))
    ).toEqual([])
    expect(
      [...text.matchAll(/npm run (\w[\w:-]*)/g)]
        .map(([, name]) => name)
        .filter(name => !scripts[name])
    ).toEqual([])
    expect(
      [...text.matchAll(/diagnoses\.md#([\w-]+)/g)]
        .map(([, id]) => id)
        .filter(id => !diagnoses.some(diagnosis => diagnosis.id === id))
    ).toEqual([])
  })

  it('names only existing metrics', () => {
    const known = [...targetMetrics, ...exporterMetrics].map(({ name }) => name)
    const named = [...text.matchAll(/`(memwatch_[a-z_]+)[`{]/g)].map(([, name]) =>
      name.replace(/_(bucket|sum|count)$/, '')
    )
    expect(named.filter(name => !known.includes(name))).toEqual([])
  })

  if (page === COMMANDS_PAGE) return

  it('names only existing commands and options', () => {
    const commands = new Map(program.commands.map(command => [command.name(), command]))
    const wrong = [
      ...text.matchAll(/(?:^|[`$ ])(?:npx )?memwatch ([a-z][a-z-]*)((?: [^\n`|#]*)?)/gm)
    ].flatMap(([, name, rest]) => {
      const command = commands.get(name)
      if (!command) return []
      const given = [...rest.split(' -- ')[0].matchAll(/(?:^| )(--[a-z][a-z-]*)/g)].map(
        ([, option]) => option
      )
      return given
        .filter(
          option => option !== '--help' && !command.options.some(({ long }) => long === option)
        )
        .map(option => `${name} ${option}`)
    })
    expect(wrong).toEqual([])
  })
})

describe('README.md', () => {
  const text = textOf('README.md')

  it('is short, and has the two commands that set up a clone near its start', () => {
    const lines = text.trimEnd().split('\n')
    expect(lines.length).toBeLessThanOrEqual(150)
    for (const script of ['demo', 'test']) {
      const at = lines.findIndex(line => new RegExp(`^npm ci && npm (run )?${script}\\b`).test(line))
      expect(at).toBeGreaterThan(0)
      expect(at).toBeLessThan(20)
    }
  })

  it('says that nothing is on npm yet, and how to install packed files', () => {
    expect(text.match(/The packages are not on npm yet/g)).toHaveLength(1)
    expect(text).toContain('npm pack --workspaces')
  })

  it('links each diagnosis to its runbook', () => {
    const linked = [...text.matchAll(/^\| \[`([\w-]+)`\]\(([^)]+)\)/gm)].map(([, id, to]) => [id, to])
    expect(linked).toEqual(diagnoses.map(({ id, runbook }) =>
      [id, runbook ? `alerts/runbooks/${runbook}.md` : `docs/${id}.md`]))
  })

  it('has the same figures as docs/accuracy.md', () => {
    const accuracy = textOf('docs/accuracy.md').replaceAll('*', '')
    const right = kind => new RegExp(`${kind} \\| (\\d+ of \\d+) `).exec(accuracy)?.[1]
    const [, ill, healthy] = /problem in (\d+ of \d+) runs[^.]* in (\d+) runs of healthy/.exec(
      text.replace(/\s+/g, ' ')) ?? []
    expect(ill).toBe(right('apps with a problem'))
    expect(`${healthy} of ${healthy}`).toBe(right('healthy apps'))
  })
})

describe.each(['README.md', 'docs/comparison.md'])('%s compares with others', page => {
  const text = textOf(page)
  const rows = text.split('\n').filter(line => /^\| .*\|$/.test(line)).map(line => line.split(' | '))
  const head = rows.findIndex(cells => cells.some(cell => cell.includes('Clinic.js Doctor')))
  const table = rows.slice(head).filter(({ length }) => length === 6)

  it('in cells that each name a source', () => {
    expect(table.length).toBeGreaterThanOrEqual(5)
    const sources = [...text.matchAll(/^\[(\w+)\]: https:\/\/\S+$/gm)].map(([, name]) => name)
    const cells = table.flatMap(([, , ...others]) => others.map(cell => cell.replace(/ \|$/, '')))
    const named = cells.map(cell => /^\[[^\]]+\]\[(\w+)\]$/.exec(cell)?.[1])
    expect(cells.filter((cell, i) => cell !== '–' && !sources.includes(String(named[i])))).toEqual([])
    expect(sources.filter(name => !named.includes(name))).toEqual([])
  })
})

describe('ARCHITECTURE.md', () => {
  const text = textOf('ARCHITECTURE.md')

  it('is one page', () => {
    expect(text.split(/\s+/).filter(word => word !== '').length).toBeLessThanOrEqual(1500)
  })

  it('names only existing files and folders', () => {
    const named = [...text.matchAll(/`([\w.-]+\/[\w./-]*)`/g)].map(([, name]) => name)
    // Texts about the exporter or the tests may name folders there without `exporter/` or `test/`.
    const roots = ['', 'engine', 'exporter', 'test']
    const isThere = name => roots.some(root => fs.existsSync(path.join(ROOT, root, name)))
    expect(named.length).toBeGreaterThan(40)
    expect(named.filter(name => !isThere(name))).toEqual([])
  })

  it('has a row for each folder of the project and its packages', () => {
    const listed = execFileSync('git', ['ls-files', '-z'],
      { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 })
    const folders = new Set(listed.split('\0').flatMap(file => {
      const [top, second, third] = file.split('/')
      if (second === undefined || top.startsWith('.')) return []
      return third !== undefined && ['agent', 'cli', 'engine', 'exporter'].includes(top)
        ? [`${top}/${second}/`]
        : [`${top}/`]
    }))
    expect([...folders].filter(folder => !text.includes(`\`${folder}\``))).toEqual([])
  })
})

describe('docs/decisions', () => {
  const names = fs
    .readdirSync(path.join(ROOT, 'docs/decisions'))
    .filter(name => name !== 'README.md')

  it.each(names)('%s is short: decision in one sentence, context, details, consequences', name => {
    const text = textOf(`docs/decisions/${name}`)
    expect(name).toMatch(/^\d{4}-[a-z0-9-]+\.md$/)
    const [, opening] = text.split(/\n\n/)
    expect(opening).toMatch(/^(memwatch|[A-Z`]).*[^:]\.$/s)
    expect(opening.match(/[.!?](\s|$)/g)).toHaveLength(1)
    expect([...text.matchAll(/^## (.*)$/gm)].map(([, title]) => title)).toEqual([
      'Context',
      'Decision',
      'Consequences'
    ])
    expect(text.split(/\s+/).filter(word => word !== '').length).toBeLessThanOrEqual(250)
  })

  it('are numbered without gaps, and listed by number and title', () => {
    const listed = [
      ...textOf('docs/decisions/README.md').matchAll(/^- \[(\d{4}): (.*)\]\((.*)\)$/gm)
    ]
    expect(listed.map(([, , , name]) => name)).toEqual(names)
    listed.forEach(([, number, title, name], i) => {
      expect(Number(number)).toBe(i + 1)
      expect(textOf(`docs/decisions/${name}`).split('\n')[0]).toBe(`# ${title}`)
    })
  })
})
