'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { program } = require('../../exporter/cli/memwatch')
const { options } = require('../../exporter/config')
const { options: agentOptions } = require('memwatch/config')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { diagnoses } = require('../../exporter/diagnoses')
const { scripts } = require('../../package.json')

const ROOT = path.join(__dirname, '../..')
const FOLDERS = ['.', 'docs', 'deploy', 'alerts', 'alerts/runbooks', 'dashboards', 'lab', 'agent', 'allocator', 'exporter']
const pages = FOLDERS.flatMap(folder => fs.readdirSync(path.join(ROOT, folder)).filter(name => name.endsWith('.md')).map(name => path.join(folder, name)))
const textOf = page => fs.readFileSync(path.join(ROOT, page), 'utf8')
/** As GitHub makes them. @param {string} page @returns {string[]} */
const anchorsOf = page => [...textOf(page).matchAll(/^#+ (.*)$/gm)].map(([, title]) => title.toLowerCase().replace(/[^\w\- ]/g, '').trim().replaceAll(' ', '-'))
  .concat([...textOf(page).matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, name]) => name))

describe.each(pages)('%s', page => {
  const text = textOf(page)

  it('links to what there is', () => {
    const links = [...text.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(([, file, anchor]) => ({ file: path.join(path.dirname(page), file), anchor, own: file === '' }))
    const broken = links.filter(({ file, anchor, own }) => {
      const to = own ? page : file
      return !fs.existsSync(path.join(ROOT, to)) || (anchor !== undefined && to.endsWith('.md') && !anchorsOf(to).includes(anchor))
    })
    expect(broken).toEqual([])
  })

  it('names variables, scripts and diagnoses that there are', () => {
    const known = [...Object.values(options), ...Object.values(agentOptions)].map(({ env }) => env).concat('MEMWATCH_URL')
    expect([...text.matchAll(/\bMEMWATCH_[A-Z_]+\b/g)].map(([name]) => name).filter(name => !known.includes(name) && !name.endsWith('_'))).toEqual([])
    expect([...text.matchAll(/npm run (\w[\w:-]*)/g)].map(([, name]) => name).filter(name => !scripts[name])).toEqual([])
    expect([...text.matchAll(/diagnoses\.md#([\w-]+)/g)].map(([, id]) => id).filter(id => !diagnoses.some(diagnosis => diagnosis.id === id))).toEqual([])
  })

  it('names metrics that there are', () => {
    const known = [...targetMetrics, ...exporterMetrics].map(({ name }) => name)
    const named = [...text.matchAll(/`(memwatch_[a-z_]+)[`{]/g)].map(([, name]) => name.replace(/_(bucket|sum|count)$/, ''))
    expect(named.filter(name => !known.includes(name))).toEqual([])
  })

  it('gives commands and options that there are', () => {
    const commands = new Map(program.commands.map(command => [command.name(), command]))
    const wrong = [...text.matchAll(/(?:^|[`$ ])(?:npx )?memwatch ([a-z][a-z-]*)((?: [^\n`|#]*)?)/gm)].flatMap(([, name, rest]) => {
      const command = commands.get(name)
      if (!command) return []
      const given = [...rest.split(' -- ')[0].matchAll(/(?:^| )(--[a-z][a-z-]*)/g)].map(([, option]) => option)
      return given.filter(option => option !== '--help' && !command.options.some(({ long }) => long === option)).map(option => `${name} ${option}`)
    })
    expect(wrong).toEqual([])
  })
})
