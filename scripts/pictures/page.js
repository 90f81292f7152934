'use strict'

/**
 * Draws the pictures of the exporter's page for docs/page, in light and dark, with real apps of the
 * lab, a real exporter and a real browser. The script takes some three minutes, and needs Linux,
 * root and the tools of the tests. docs/page/pictures.json lists the pictures, and
 * test/contracts/pictures.test.js compares this list with the page.
 */

const fs = require('node:fs')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { apps } = require('../../lab')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { ROOT } = require('../generate')
const { findTools, MISSING } = require('../system-tools')
const { startExporter, eventually } = require('../../test/support/exporter')
const { openPage, closeBrowser } = require('../../test/support/browser')
const { hashText, styleHash } = require('./page-hashes')

const AGENT = path.join(ROOT, 'agent/index.js')
const FOLDER = path.join(ROOT, 'docs/page')
/** Apps of the lab by their names in the pictures. The leaking app starts last: it dies soon. */
const SHOWN = Object.freeze({
  shop: 'semi-space-starvation',
  thumbnails: 'allocator-fragmentation',
  reports: 'event-loop-blocked',
  gateway: 'healthy-steady',
  'gateway-2': 'healthy-steady'
})
const LEAK = Object.freeze({ name: 'checkout', app: 'js-heap-leak' })
const SCHEMES = Object.freeze(/** @type {const} */ (['light', 'dark']))
const PICTURES = Object.freeze([
  { name: 'target', hash: `#target=${LEAK.name}`, viewport: { width: 1280, height: 800 } },
  { name: 'list', hash: '', viewport: { width: 1280, height: 560 } },
  { name: 'phone', hash: '#target=shop', viewport: { width: 390, height: 844 } }
])
const CONFIRMED_WITHIN_MS = 240_000

/** @type {{ child: import('node:child_process').ChildProcess, group: any }[]} */
const running = []

/**
 * @param {string} socket
 * @param {string} name
 * @param {string} id of an app of the lab
 */
function start (socket, name, id) {
  const app = apps.find(app => app.id === id)
  if (!app) throw new Error(`no app ${id} in the lab`)
  const { script, nodeArgs = [], memoryLimitBytes: limitBytes } = app
  const group = limitBytes ? createMemoryGroup({ limitBytes, name: 'picture' }) : undefined
  const words = ['-r', AGENT, ...nodeArgs, script]
  const { command, args } = group?.wrap(process.execPath, words) ??
    { command: process.execPath, args: words }
  const env = { ...process.env, NODE_OPTIONS: '', MEMWATCH_SOCKET: socket, MEMWATCH_NAME: name }
  running.push({ group, child: spawn(command, args, { stdio: 'ignore', env }) })
}

async function stopAll () {
  for (const { child, group } of running.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL')
      await once(child, 'close')
    }
    await group?.remove()
  }
}

/**
 * @param {string} chromium
 * @param {string} url
 * @param {typeof PICTURES[number] & { colorScheme: typeof SCHEMES[number] }} picture
 */
async function take (chromium, url, { name, hash, viewport, colorScheme }) {
  const { page, close } = await openPage(chromium, { colorScheme, viewport })
  await page.goto(`${url}/${hash}`)
  await page.locator(hash === '' ? 'tbody tr .mini' : '#chart-resources canvas').first().waitFor()
  const file = `${name}-${colorScheme}.png`
  const image = await page.screenshot({ path: path.join(FOLDER, file) })
  const headings = await page.locator('h2:visible, thead th').allInnerTexts()
  await close()
  // Sizes and times differ from run to run.
  const words = headings.map(text => text.replace(/[:,]? ?\d.*$/, '').replace(/ ▾$/, ''))
  return { file, sha256: hashText(image), headings: [...new Set(words)].filter(Boolean) }
}

async function main () {
  const tools = findTools()
  if (!tools) throw new Error(MISSING)
  const exporter = await startExporter()
  try {
    const judged = async (query = '') =>
      /** @type {any[]} */ (await (await exporter.get(`/api/v1/diagnoses${query}`)).json())
    const primaries = async () => (await judged())
      .filter(({ primary }) => primary)
      .map(({ target }) => target)
    for (const [name, id] of Object.entries(SHOWN)) start(exporter.socket.path, name, id)
    console.log('waiting for the verdicts …')
    const ill = Object.entries(SHOWN).flatMap(([name, id]) => id.startsWith('healthy') ? [] : [name])
    const isThere = (/** @type {string[]} */ found) => ill.every(name => found.includes(name))
    await eventually(primaries, isThere, CONFIRMED_WITHIN_MS)
    console.log('waiting for the leak and its heap profile …')
    start(exporter.socket.path, LEAK.name, LEAK.app)
    await eventually(primaries, found => found.includes(LEAK.name), CONFIRMED_WITHIN_MS)
    await eventually(
      () => judged(`?target=${LEAK.name}`),
      ([leak]) => Boolean(leak?.primary?.suspects),
      CONFIRMED_WITHIN_MS
    )
    const pictures = []
    for (const picture of PICTURES) {
      for (const colorScheme of SCHEMES) {
        pictures.push(await take(tools.chromium, exporter.url, { ...picture, colorScheme }))
      }
    }
    fs.writeFileSync(path.join(FOLDER, 'pictures.json'),
      `${JSON.stringify({ styleSha256: styleHash(), pictures }, undefined, 2)}\n`)
    console.log(`${FOLDER}: ${pictures.map(({ file }) => file).join(', ')}`)
  } finally {
    await stopAll()
    await closeBrowser()
    await exporter.stop()
  }
}

main()
