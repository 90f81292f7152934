'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { diagnoses } = require('../../engine/diagnoses')
const { charts } = require('../../scripts/page-charts')
const { ROOT, listFiles } = require('../support/repository-files')

/** The build takes 15 to 20 s on two idle cores, and three times that on busy ones. */
const BUILD_MS = 180_000

describe('the documentation site', () => {
  /** @type {string} */
  let folder
  /** @type {{ status: number | null, output: string }} */
  let build
  const read = page => fs.readFileSync(path.join(folder, `${page}.html`), 'utf8')
  /**
   * Evaluates an expression in another process, because jest imports no ES modules.
   * @param {string} expression
   * @returns {any} its JSON value
   */
  const evaluate = expression => {
    const code = `import { routes } from './docs/.vitepress/pages.mjs'
      import { siteLink } from './docs/.vitepress/markdown.mjs'
      console.log(JSON.stringify(${expression}))`
    const { stdout, stderr } = spawnSync(
      process.execPath, ['--input-type=module', '-e', code], { cwd: ROOT, encoding: 'utf8' })
    return stdout === '' ? stderr : JSON.parse(stdout)
  }
  const textOf = html => html.replace(/<[^>]*>/g, '').replace(/&#39;/g, "'")

  beforeAll(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-site-'))
    const vitepress = path.join(ROOT, 'node_modules/vitepress/bin/vitepress.js')
    const { status, stdout, stderr } = spawnSync(
      process.execPath, [vitepress, 'build', 'docs', '--outDir', folder],
      { cwd: ROOT, encoding: 'utf8', timeout: BUILD_MS })
    build = { status, output: stdout + stderr }
  }, BUILD_MS)
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

  it('builds without a dead link', () => {
    expect(build).toEqual({ status: 0, output: expect.stringContaining('build complete') })
  })

  it('has a page for each text for users in docs/, deploy/, alerts/ and the root', () => {
    const routes = evaluate('routes')
    const files = ['docs/**.md', 'alerts/**.md', '*.md', 'deploy/README.md']
      .flatMap(pattern => listFiles(`:(glob)${pattern}`))
    const expected = [...new Set([...files, ...Object.keys(routes)])]
      .filter(file => file !== 'README.md' && !path.basename(file).startsWith('NEXT-'))
    expect(expected.filter(file => !routes[file])).toEqual([])
    const missing = Object.values(routes)
      .filter(page => !fs.existsSync(path.join(folder, page.replace('.md', '.html'))))
    expect(missing).toEqual([])
  })

  it.each(diagnoses.map(({ id, ...rest }) => [id, rest]))(
    '%s has a page with symptoms, detection and fix', (id, { title, requires, runbook }) => {
      const text = textOf(read(`diagnoses/${id}`))
      expect(text).toContain(title)
      const headings = ['Meaning', 'Impact', 'Check the result', 'How memwatch knows', 'Limits',
        ...runbook ? ['Confirm', 'Fix now', 'Permanent fix', 'What the graphs show'] : ['Fix']]
      expect(headings.filter(heading => !text.includes(heading))).toEqual([])
      expect(requires.filter(signal => !text.includes(signal))).toEqual([])
    })

  it('names the chart that shows a leak, and links its published threads', () => {
    const html = read('diagnoses/js-heap-leak')
    const heap = charts.find(({ id }) => id === 'heap')
    expect(textOf(html)).toContain(heap?.title)
    expect(html).toContain('https://github.com/nodejs/node/issues/54614')
  })

  it('has a search without a server', () => {
    const chunks = fs.readdirSync(path.join(folder, 'assets/chunks'))
    expect(chunks.filter(name => name.includes('localSearchIndex'))).toHaveLength(1)
  })

  it('links other files to GitHub, and a runbook to its diagnosis', () => {
    const links = [
      ['../compose.yaml', 'docs/quick-start.md'],
      ['../alerts/runbooks/MemwatchJsHeapLeak.md#meaning', 'docs/faq.md'],
      ['diagnoses.md#js-heap-leak', 'docs/faq.md'],
      ['#parts-of-rss', 'docs/concepts.md']
    ]
    expect(evaluate(`${JSON.stringify(links)}.map(link => siteLink(...link))`)).toEqual([
      'https://github.com/memwatch/memwatch/blob/main/compose.yaml',
      '/diagnoses/js-heap-leak#meaning',
      '/diagnoses/js-heap-leak',
      '#parts-of-rss'
    ])
  })
})
