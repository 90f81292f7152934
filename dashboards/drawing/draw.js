'use strict'

/**
 * `npm run dashboards:draw`: draws every dashboard with Grafana's own components in a headless
 * Chromium, in both themes. The data come from a real Prometheus, which scrapes a real exporter
 * with lab apps, broken and healthy. The script writes docs/dashboards/*.png. It fails if a panel
 * cannot be drawn, or is empty although it may not be.
 *
 *   npm run dashboards:draw -- --minutes 3
 *
 * It needs chromium and prometheus. The first run also installs half a gigabyte of npm packages in
 * this folder.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFile, execFileSync, spawn } = require('node:child_process')
const { pathToFileURL } = require('node:url')
const { parseArgs, promisify } = require('node:util')
const { apps } = require('@memwatch/lab')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { dashboards, filled, mayBeEmpty } = require('../../scripts/dashboards')
const { recordedRules, rulesYaml } = require('../../scripts/alerts/index')
const { findTools, MISSING } = require('../../scripts/system-tools')
const { startExporter } = require('../../test/support/exporter')
const { startPrometheus } = require('../../test/support/prometheus')

const OUT = path.join(__dirname, '../../docs/dashboards')
/** Pictures that README and dashboards/README.md show; all others are only checked for errors. */
const SHOWN = ['process-dark.png', 'fleet-light.png']
const AGENT = path.join(__dirname, '../../agent/index.js')
/** Apps of the pictures, by the names in them. */
const APPS = {
  checkout: 'semi-space-starvation',
  catalog: 'oversized-heap',
  images: 'allocator-fragmentation',
  sessions: 'js-heap-leak',
  gateway: 'healthy-steady'
}
/** The process whose dashboard is drawn. */
const PROCESS = 'images'
const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome']

const { values: given } = parseArgs({ options: { minutes: { type: 'string', default: '3' } } })

/** @returns {string} */
function browser () {
  for (const name of BROWSERS) {
    for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
      if (fs.existsSync(path.join(folder, name))) return path.join(folder, name)
    }
  }
  throw new Error(
    `none of ${BROWSERS.join(', ')} is here. Debian: apt-get install --no-install-recommends ` +
      'chromium'
  )
}

/** @param {string} folder folder for the bundle */
function bundle (folder) {
  if (!fs.existsSync(path.join(__dirname, 'node_modules'))) {
    console.log("installing Grafana's components beside this file …")
    execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], {
      cwd: __dirname,
      stdio: ['ignore', 'ignore', 'inherit']
    })
  }
  require('./node_modules/esbuild').buildSync({
    entryPoints: [path.join(__dirname, 'view.jsx')],
    bundle: true,
    format: 'iife',
    minify: true,
    outfile: path.join(folder, 'view.js'),
    alias: { 'react-custom-scrollbars-2': path.join(__dirname, 'scrollbars.mjs') },
    loader: { '.svg': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' },
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error'
  })
}

/**
 * @param {string} prometheusUrl
 * @param {any} dashboard
 * @param {{ from: number, to: number, step: number }} range
 */
async function answersOf (prometheusUrl, dashboard, { from, to, step }) {
  const chosen = {
    rateInterval: '15s',
    ...(dashboard.uid === 'memwatch-process' && { target: PROCESS })
  }
  const ask = async (/** @type {string} */ way, /** @type {Record<string, string>} */ query) => {
    const { status, data, error } = await (
      await fetch(`${prometheusUrl}/api/v1/${way}?${new URLSearchParams(query)}`)
    ).json()
    if (status !== 'success') throw new Error(error)
    return data.result
  }
  const empty = []
  const answers = {}
  for (const panel of dashboard.panels.filter(({ type }) => type !== 'row')) {
    answers[panel.id] = []
    for (const { refId, expr, legendFormat: legend, format } of panel.targets) {
      const table = format === 'table'
      const result = table
        ? await ask('query', { query: filled(expr, chosen), time: String(to) })
        : await ask('query_range', {
          query: filled(expr, chosen),
          start: String(from),
          end: String(to),
          step: String(step)
        })
      if (result.length === 0 && !mayBeEmpty(panel, expr)) empty.push(`${panel.title}: ${expr}`)
      answers[panel.id].push({ refId, legend, table, result })
    }
  }
  return { answers, empty }
}

/**
 * @param {string} prometheusUrl
 * @param {string} name
 * @param {string} folder
 */
async function draw (prometheusUrl, name, folder) {
  const dashboard = /** @type {any} */ (JSON.parse(JSON.stringify(dashboards[name]())))
  dashboard.panels.forEach((panel, i) => { panel.id = i + 1 })
  const to = Math.floor(Date.now() / 1000)
  const range = { from: to - Math.round(60 * Number(given.minutes)), to, step: 2 }
  const { answers, empty } = await answersOf(prometheusUrl, dashboard, range)
  const height = Math.max(...dashboard.panels.map(({ gridPos: { y, h } }) => (y + h) * 38)) + 16
  const page = path.join(folder, `${name}.html`)
  const data = JSON.stringify({ dashboard, ...range, answers }).replaceAll('<', '\\u003c')
  fs.writeFileSync(
    page,
    '<!doctype html><meta charset=utf8><link rel=stylesheet ' +
      'href=view.css><style>body{margin:0}</style><div ' +
        'id=root></div><script>window.onerror=text=>{document.title=\'ERROR ' +
          `'+text};window.DRAWING=${data}</script><script src=view.js></script>`
  )
  for (const theme of ['dark', 'light']) {
    const picture = `${name}-${theme}.png`
    const file = path.join(SHOWN.includes(picture) ? OUT : folder, picture)
    // Chromium runs asynchronously, because the exporter runs in this process.
    const run = async (/** @type {string[]} */ ...args) => (await promisify(execFile)(browser(), ['--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--allow-file-access-from-files', `--window-size=1600,${height}`, '--virtual-time-budget=6000', ...args, `${pathToFileURL(page)}?theme=${theme}`], { maxBuffer: 2 ** 28 })).stdout
    await run(`--screenshot=${file}`)
    const dom = (await run('--dump-dom')).replace(/<script[\s\S]*?<\/script>/g, '')
    const error = /<title>(ERROR .*?)<\/title>/.exec(dom)?.[1]
    if (error || !dom.includes('canvas')) {
      throw new Error(`${name}, ${theme}: ${error ?? 'nothing was drawn'}`)
    }
    console.log(
      `${path.relative(process.cwd(), file)}: nothing to show in ` +
        `${[...dom.matchAll(/data-nothing="([^"]*)"/g)].map(([, title]) => title).join(', ') || 'no panel'}`
    )
  }
  return empty
}

async function main () {
  const tools = findTools()
  if (!tools) throw new Error(MISSING)
  browser()
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-drawing-'))
  fs.mkdirSync(OUT, { recursive: true })
  bundle(folder)
  /** @type {(() => unknown)[]} called in reverse order */
  const stops = [() => fs.rmSync(folder, { recursive: true, force: true })]
  try {
    const exporter = await startExporter()
    stops.push(exporter.stop)
    for (const [name, id] of Object.entries(APPS)) {
      const app = /** @type {any} */ (apps.find(app => app.id === id))
      const group = createMemoryGroup({ limitBytes: app.memoryLimitBytes, name: `drawing-${name}` })
      const { command, args } = group.wrap(process.execPath, [
        '--require',
        AGENT,
        ...(app.nodeArgs ?? []),
        app.script
      ])
      const child = spawn(command, args, {
        stdio: 'ignore',
        env: {
          ...process.env,
          NODE_OPTIONS: '',
          MEMWATCH_SOCKET: exporter.socket.path,
          MEMWATCH_NAME: name
        }
      })
      stops.push(
        () => group.remove(),
        () =>
          new Promise(resolve => {
            child.once('close', resolve)
            if (!child.kill('SIGTERM')) resolve(undefined)
          })
      )
    }
    const prometheus = await startPrometheus({
      file: tools.prometheus,
      rules: rulesYaml(recordedRules(), 'a drawing'),
      targets: [`127.0.0.1:${exporter.port}`],
      job: 'shop/memwatch'
    })
    stops.push(prometheus.stop)
    console.log(`${Object.keys(APPS).length} lab apps run for ${given.minutes} minutes …`)
    await new Promise(resolve => setTimeout(resolve, 60_000 * Number(given.minutes)))
    const empty = []
    for (const name of Object.keys(dashboards)) {
      empty.push(...(await draw(prometheus.url, name, folder)))
    }
    if (empty.length > 0) throw new Error(`empty, and not excused:\n${empty.join('\n')}`)
  } finally {
    for (const stop of stops.reverse()) await stop()
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
