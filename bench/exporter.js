'use strict'

/**
 * `npm run bench:exporter` measures the cost of the exporter by number of targets. Simulated agents
 * repeat a real recording, and each sends a frame a second. The bench measures CPU per frame and
 * share of a core, RSS, and the steps of a frame. It scrapes each second for a minute, and measures
 * duration and size of a scrape and the longest wait of another request. It also measures the
 * memory of longer histories. With --write the results go into docs/exporter.md.
 *
 *   npm run bench:exporter -- --targets 1,10,100,1000,3000 --seconds 30 --histories 60,600 --write
 *   npm run bench:exporter -- --histories ''    none
 */

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, fork, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { gunzipSync } = require('node:zlib')
const { median, quantile } = require('simple-statistics')
const { decode } = require('../engine/decode/decode')
const { Target } = require('../engine/history/target')
const { findCase } = require('../engine/verdicts/case')
const { evaluate } = require('../engine/verdicts/evaluate')
const { parseOptions } = require('./options')
const { rssOf } = require('./process-reading')
const { repeatRecording } = require('./repeated-recording')

const MEMWATCH = path.join(__dirname, '../cli/memwatch.js')
const PROBE = path.join(__dirname, 'health-probe.js')
const FEEDER = path.join(__dirname, 'exporter-feeder.js')
const CLOCK_TICKS = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))
const WARM_SECONDS = 10
/** Number of scrapes, one per second: after a minute V8's new space has its final size. */
const SCRAPES = 60
/** Scrapes while another client sends requests. */
const PROBED_SCRAPES = 10
/**
 * The bench also measures the sidecar with the settings of the image, as every pod pays for its
 * memory.
 */
const SIDECAR_TARGETS = [1, 10]
const IMAGE_ENV = { MALLOC_ARENA_MAX: '1' }
/** Flags of deploy/image/start.sh, without the heap flag, which needs Node.js 24. */
const IMAGE_FLAGS = ['--max-semi-space-size=1', '--optimize-for-size']
/** Lengths of history whose memory is measured, in seconds of a target's life. */
const HISTORIES = [60, 600, 7200]

const given = parseOptions(__filename, {
  targets: { type: 'string', default: '1,10,100,1000,3000' },
  seconds: { type: 'string', default: '30' },
  histories: { type: 'string', default: HISTORIES.join(',') },
  node: { type: 'string', default: process.execPath },
  flags: { type: 'string', default: '' },
  write: { type: 'boolean', default: false }
})

/**
 * @param {number} pid
 * @returns {number} CPU seconds of a process, proc(5)
 */
function cpuSeconds (pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS
}

/**
 * @param {(exporter: { pid: number, url: string, socket: string }) => Promise<object>} use
 * @param {NodeJS.ProcessEnv} [env]
 */
async function withExporter (use, env) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-bench-'))
  const socket = path.join(folder, 's')
  const child = spawn(
    given.node,
    [
      ...given.flags.split(' ').filter(Boolean),
      ...(env === IMAGE_ENV ? IMAGE_FLAGS : []),
      MEMWATCH,
      'exporter',
      '--listen',
      '127.0.0.1:0',
      '--socket',
      socket,
      '--log-level',
      'silent'
    ],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } }
  )
  try {
    const [text] = await once(child.stderr, 'data')
    const url = /http:\S+(?=\/metrics)/.exec(String(text))?.[0] ?? ''
    return await use({ pid: child.pid ?? 0, url, socket })
  } finally {
    child.kill()
    await once(child, 'close')
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Scrapes like Prometheus, on one connection, and measures the time until the last byte.
 * @param {string} url
 * @param {http.Agent} agent
 */
async function scrape (url, agent) {
  const began = performance.now()
  const [response] = await once(http.get(`${url}/metrics`, { agent }), 'response')
  /** @type {Buffer[]} */
  const chunks = []
  response.on('data', (/** @type {Buffer} */ chunk) => chunks.push(chunk))
  await once(response, 'end')
  const ms = performance.now() - began
  const text = Buffer.concat(chunks).toString()
  if (response.statusCode !== 200) throw new Error(`/metrics said ${response.statusCode}: ${text}`)
  return { ms, text }
}

/**
 * Scrapes once a second, then some more with a second client, to measure its longest wait.
 * @param {string} url
 * @param {number} pid of the exporter
 */
async function scrapes (url, pid) {
  const agent = new http.Agent({ keepAlive: true })
  const ms = []
  let text = ''
  for (let i = 0; i < SCRAPES; i++) {
    const scraped = await scrape(url, agent)
    ms.push(scraped.ms)
    text = scraped.text
    await wait(1000)
  }
  const rss = rssOf(pid)
  const probe = fork(PROBE, [url])
  await wait(1000) // The first requests take longer.
  probe.send('forget')
  for (let i = 0; i < PROBED_SCRAPES; i++) {
    await scrape(url, agent)
    await wait(1000)
  }
  probe.send('say')
  const [longestMs] = await once(probe, 'message')
  agent.destroy()
  return {
    ms,
    rss,
    bytes: text.length,
    series: text.split('\n').filter(line => line !== '' && line[0] !== '#').length,
    longestMs
  }
}

/**
 * The feeder ends before the exporter, because it treats a broken connection as an error.
 * @param {import('node:child_process').ChildProcess} feeder
 */
async function endOf (feeder) {
  const exit = once(feeder, 'exit')
  feeder.send('end')
  await exit
}

/**
 * @param {number} targets
 * @param {NodeJS.ProcessEnv} [env]
 */
const atOneHertz = (targets, env) => withExporter(async ({ pid, url, socket }) => {
  const seconds = Number(given.seconds)
  const feeder = fork(FEEDER, [socket, String(targets), String(WARM_SECONDS + seconds + 600), '1'])
  feeder.on('exit', code => { if (code !== 0) throw new Error(`the feeder ended with ${code}`) })
  await once(feeder, 'message')
  await wait(WARM_SECONDS * 1000)
  const [cpu, at] = [cpuSeconds(pid), performance.now()]
  await wait(seconds * 1000)
  const took = (performance.now() - at) / 1000
  const share = (cpuSeconds(pid) - cpu) / took
  const rss = rssOf(pid)
  const scraped = await scrapes(url, pid)
  await endOf(feeder)
  return {
    targets: env
      ? `${targets}, ${[
          ...Object.entries(env).map(pair => pair.join('=')),
          ...(env === IMAGE_ENV ? IMAGE_FLAGS : [])
        ].join(' ')}`
      : targets,
    share,
    microsPerFrame: (share / targets) * 1e6,
    rss,
    rssAfterScrapes: scraped.rss,
    series: scraped.series,
    firstScrapeMs: scraped.ms[0],
    scrapeMs: median(scraped.ms),
    scrapeBytes: scraped.bytes,
    waitedMs: scraped.longestMs
  }
}, env)

/**
 * @param {number} seconds seconds of history of ten targets, sent as fast as the exporter accepts
 */
const withHistory = seconds => withExporter(async ({ pid, socket }) => {
  const TARGETS = 10
  const before = rssOf(pid)
  const feeder = fork(FEEDER, [socket, String(TARGETS), String(seconds), '0'])
  feeder.on('exit', code => { if (code !== 0) throw new Error(`the feeder ended with ${code}`) })
  const [cpu] = [cpuSeconds(pid)]
  for (let said; said !== 'done';) [said] = await once(feeder, 'message')
  await wait(3000)
  const found = {
    seconds,
    perTargetBytes: (rssOf(pid) - before) / TARGETS,
    rss: rssOf(pid),
    microsPerFrame: ((cpuSeconds(pid) - cpu) / TARGETS / seconds) * 1e6
  }
  await endOf(feeder)
  return found
})

/**
 * Age and recording of the old target: its frames contain the time for which the thread waited for
 * a CPU.
 */
const OLD_SECONDS = 3600
const OLD_RECORDING = '24-healthy-steady-broken@0.25.ndjson.gz'

/**
 * Cost in µs of each step of one frame in the exporter, measured in this otherwise idle process.
 * The exporter evaluates every second frame. `parse` parses the line, `take` checks the message and
 * stores it in the history. A young target recomputes its trends at each evaluation. An old one
 * reads more history.
 */
function stepMicros () {
  const TARGETS = 20
  const lines = gunzipSync(
    fs.readFileSync(path.join(__dirname, '../test/recordings/20-healthy-steady-broken.ndjson.gz'))
  )
    .toString()
    .trim()
    .split('\n')
    .map(text => JSON.parse(text).line)
    .filter(Boolean)
    .map(line => JSON.stringify(line))
  const hello = JSON.parse(lines.find(line => line.includes('"type":"hello"')) ?? '')
  /** @type {Record<'parse' | 'take' | 'evaluate' | 'evaluate, after an hour', number[]>} */
  const micros = { parse: [], take: [], evaluate: [], 'evaluate, after an hour': [] }
  /**
   * @template T
   * @param {keyof micros} step
   * @param {() => T} work
   * @returns {T}
   */
  const timed = (step, work) => {
    const began = performance.now()
    const result = work()
    micros[step].push((performance.now() - began) * 1000)
    return result
  }
  /**
   * @param {keyof micros} step
   * @param {Target} target
   */
  const judged = (step, target) => {
    const before = findCase(target).evaluatedAtSeconds
    const began = performance.now()
    evaluate(target)
    if (findCase(target).evaluatedAtSeconds !== before) {
      micros[step].push((performance.now() - began) * 1000)
    }
  }
  for (let n = 0; n < TARGETS; n++) {
    const target = new Target({ hello, name: 'bench', thread: 'main' })
    for (const line of lines) {
      const decoded = timed('parse', () => decode(line))
      if (!decoded.ok || decoded.message.type !== 'frame') continue
      const frame = decoded.message
      timed('take', () => target.take(frame, frame.atUnixMs))
      judged('evaluate', target)
    }
  }
  const repeated = repeatRecording(OLD_RECORDING)
  const old = new Target({ hello: repeated.hello, name: 'bench', thread: 'main' })
  for (let n = 0; n < 2 * OLD_SECONDS; n++) {
    const decoded = decode(JSON.stringify(repeated.frameOf(n)))
    if (!decoded.ok || decoded.message.type !== 'frame') throw new Error('not a frame')
    old.take(decoded.message, decoded.message.atUnixMs)
    if (n < OLD_SECONDS) evaluate(old)
    else judged('evaluate, after an hour', old)
  }
  return Object.entries(micros).map(([step, all]) => ({
    step,
    median: median(all),
    high: quantile(all, 0.99)
  }))
}

const table = (/** @type {string[]} */ head, /** @type {(string | number)[][]} */ rows) =>
  [
    `| ${head.join(' | ')} |`,
    `|${head.map(() => ' --- ').join('|')}|`,
    ...rows.map(row => `| ${row.join(' | ')} |`)
  ].join('\n')
const mib = (/** @type {number} */ bytes) => (bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 2 : 0)

async function main () {
  const rows = []
  const asked = given.targets.split(',').filter(Boolean).map(Number)
  const runs = [
    ...asked.map(targets => ({ targets, env: undefined })),
    ...asked
      .filter(targets => SIDECAR_TARGETS.includes(targets))
      .map(targets => ({ targets, env: IMAGE_ENV }))
  ]
  for (const { targets, env } of runs) {
    const row = /** @type {any} */ (await atOneHertz(targets, env))
    console.log(JSON.stringify(row))
    rows.push(row)
  }
  const histories = []
  for (const seconds of given.histories.split(',').filter(Boolean).map(Number)) {
    const row = /** @type {any} */ (await withHistory(seconds))
    console.log(JSON.stringify(row))
    histories.push(row)
  }
  const version = execFileSync(given.node, ['-p', 'process.versions.node'], {
    encoding: 'utf8'
  }).trim()
  const page =
    [
      '# Capacity of the exporter',
      '<!-- Written by npm run bench:exporter -- --write; do not edit. -->\nThe bench ran on ' +
        `Node ${version}, on a machine with two cores and other load. Each agent replays a real ` +
        'recording, one frame a second. The exporter also serves prom-client\'s ' +
        `names.${given.flags && ` Node's flags: \`${given.flags}\`.`}`,
      '## By targets',
      table(
        [
          'targets',
          'of a core',
          'CPU per frame, with evaluation, µs',
          'RSS, MiB',
          `after ${SCRAPES} scrapes`,
          'series',
          'first scrape, ms',
          'scrape, median, ms',
          'scrape, MB',
          'longest wait of another request, ms'
        ],
        rows.map(row => [
          row.targets,
          `${(100 * row.share).toFixed(1)} %`,
          row.microsPerFrame.toFixed(0),
          mib(row.rss),
          mib(row.rssAfterScrapes),
          row.series,
          row.firstScrapeMs.toFixed(0),
          row.scrapeMs.toFixed(0),
          (row.scrapeBytes / 1e6).toFixed(2),
          row.waitedMs.toFixed(0)
        ])
      ),
      '## A frame, step by step',
      table(
        ['step', 'median, µs', 'p99, µs'],
        stepMicros().map(({ step, median, high }) => [step, median.toFixed(0), high.toFixed(0)])
      ),
      ...(histories.length === 0
        ? []
        : [
            '## By the length of a history',
            'Ten targets send frames as fast as the exporter accepts them. After some seconds ' +
            'the exporter reduces the resolution, as under any overload. Finally it accepts no ' +
            'new targets.',
            table(
              ['seconds', 'memory per target, MiB', 'total RSS, MiB', 'CPU per frame, µs'],
              histories.map(row => [
                row.seconds,
                mib(row.perTargetBytes),
                mib(row.rss),
                row.microsPerFrame.toFixed(0)
              ])
            )
          ])
    ].join('\n\n') + '\n'
  console.log(page)
  if (given.write) fs.writeFileSync(path.join(__dirname, '../docs/exporter.md'), page)
}

main()
