'use strict'

/**
 * `npm run bench:replay` measures the time to judge a recorded day. It repeats a real recording up
 * to 24 hours at one frame a second, with continued counters, runs `memwatch diagnose`, and prints
 * seconds and peak memory of each run.
 *
 *   npm run bench:replay -- --recording test/recordings/20-js-heap-leak-jobs-fixed.ndjson.gz
 *   --repeats 3
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { once } = require('node:events')
const { gunzipSync } = require('node:zlib')
const { fields } = require('../agent/protocol/frame')
const { parseOptions } = require('./options')

const given = parseOptions(__filename, {
  recording: {
    type: 'string',
    default: path.join(__dirname, '../test/recordings/20-semi-space-starvation-broken.ndjson.gz')
  },
  seconds: { type: 'string', default: '86400' },
  repeats: { type: 'string', default: '3' }
})

/**
 * Value of a counter in round n: its value in the first round, plus the growth of all earlier
 * rounds. Rows and maps are added element by element.
 */
function carried (value, last, rounds) {
  if (typeof value === 'number') return value + rounds * (last ?? 0)
  if (Array.isArray(value)) return value.map((item, i) => carried(item, last?.[i], rounds))
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, carried(item, last?.[key], rounds)])
  )
}

/** @param {string} file */
async function writeDay (file) {
  const [header, hello, ...rest] = gunzipSync(fs.readFileSync(given.recording))
    .toString()
    .trim()
    .split('\n')
    .map(text => JSON.parse(text))
  const frames = rest
    .filter(({ session, line }) => session === hello.session && line?.type === 'frame')
    .map(({ line }) => line)
  const { values: last } = frames[frames.length - 1]
  const out = fs.createWriteStream(file)
  out.write(`${JSON.stringify(header)}\n${JSON.stringify(hello)}\n`)
  for (let i = 0; i < Number(given.seconds); i++) {
    const frame = frames[i % frames.length]
    const rounds = Math.floor(i / frames.length)
    const values = Object.fromEntries(Object.entries(frame.values).map(([name, value]) =>
      [name, fields[name]?.kind === 'counter' ? carried(value, last[name], rounds) : value]))
    const line = {
      ...frame,
      sequence: i + 1,
      uptimeSeconds: i + 1,
      atUnixMs: frames[0].atUnixMs + 1000 * i,
      values
    }
    if (!out.write(`${JSON.stringify({ session: hello.session, line })}\n`)) {
      await once(out, 'drain')
    }
  }
  out.end()
  await once(out, 'close')
}

/** Runs diagnose in its own process, which reports its cost at the end. */
const MEASURED = `
  const began = performance.now()
  process.on('exit', () => {
    const { maxRSS } = process.resourceUsage()
    process.stderr.write(JSON.stringify({ seconds: (performance.now() - began) / 1000, megabytes: maxRSS / 1024 }))
  })
  const { program } = require(${JSON.stringify(path.join(__dirname, '../cli/memwatch.js'))})
  program.parseAsync(['diagnose', process.argv[1]], { from: 'user' })`

async function main () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-replay-'))
  const file = path.join(folder, 'day.ndjson')
  await writeDay(file)
  console.log(`${given.seconds} frames, ${Math.round(fs.statSync(file).size / 2 ** 20)} MiB`)
  for (let i = 0; i < Number(given.repeats); i++) {
    const { stderr } = spawnSync(process.execPath, ['-e', MEASURED, file], {
      encoding: 'utf8',
      maxBuffer: 2 ** 26
    })
    const { seconds, megabytes } = JSON.parse(stderr)
    console.log(`${seconds.toFixed(1)} s, ${Math.round(megabytes)} MiB at most`)
  }
  fs.rmSync(folder, { recursive: true })
}

main()
