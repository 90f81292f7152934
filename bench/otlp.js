'use strict'

/**
 * `npm run bench:otlp` checks what real receivers get from `--otlp`, and measures its cost.
 *   names: starts a real Prometheus 3, which scrapes and receives pushes, and a real OpenTelemetry
 *     Collector. Every metric must arrive under the name in the tables, with the value of /metrics;
 *     verdicts and deaths arrive as events.
 *   cost: RSS and CPU of an exporter without a receiver, with one, with an absent one and with one
 *     that hangs.
 * The first run builds both servers: Go 1.26, the Go module proxy, some minutes each. Ends with 4
 * if they cannot be built.
 *
 *   npm run bench:otlp -- --targets 100 --seconds 60 --only cost
 */

const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { execFileSync, fork, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { compatMetrics } = require('../exporter/catalog/compat-metrics')
const { exporterMetrics } = require('../exporter/catalog/exporter-metrics')
const { otelOf } = require('../exporter/catalog/otel')
const { otelMetrics } = require('../exporter/catalog/otel-metrics')
const { targetMetrics } = require('../exporter/catalog/target-metrics')
const { startExporter, eventually } = require('../test/support/exporter')
const { spawnExporter } = require('../test/support/exporter-process')
const { startPrometheus } = require('../test/support/prometheus')
const { prometheusName } = require('../test/support/prometheus-names')
const { tellRecording } = require('../test/support/recorded-agent')
const { freePort } = require('../test/support/free-port')
const { parseOptions } = require('./options')
const { buildCollector, buildPrometheus } = require('./otlp-servers/build')
const { rssOf } = require('./process-reading')

const APPS = ['semi-space-starvation', 'js-heap-leak', 'allocator-fragmentation', 'context-leak']
/**
 * App that ends. Its scraped series end at once, while Prometheus still returns its pushed series
 * within the lookback time.
 */
const DEAD = 'context-leak'
const CANNOT_RUN = 4
const CLOCK_TICKS = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

const given = parseOptions(__filename, {
  targets: { type: 'string', default: '100' },
  seconds: { type: 'string', default: '60' },
  only: { type: 'string' }
})

/** All exported metrics, by their expected names in Prometheus. */
const foretold = new Set(
  [...targetMetrics, ...compatMetrics, ...otelMetrics, ...exporterMetrics].flatMap(row => {
    const form = otelOf({ name: '', ...row })
    if (!form) return []
    const name = prometheusName(form)
    return form.instrument === 'histogram'
      ? ['_bucket', '_sum', '_count'].map(suffix => name + suffix)
      : [name]
  })
)

/** An exporter that sends every second, fed by real apps, one of which died. @param {string} to */
async function sendingExporter (to) {
  process.env.OTEL_METRIC_EXPORT_INTERVAL = '1000'
  const exporter = await startExporter({ otlp: to, autoCaptures: false })
  const connections = []
  for (const [i, app] of APPS.entries()) {
    connections.push(
      await tellRecording(exporter, app, {
        pid: 100_000 + i,
        name: app,
        startedAtUnixMs: Date.now() - 600_000
      })
    )
  }
  connections[connections.length - 1].write(
    JSON.stringify({ v: 1, type: 'bye', sequence: 1e6, atUnixMs: Date.now(), exitCode: 1 }) + '\n'
  )
  return {
    ...exporter,
    stop: async () => {
      connections.forEach(connection => connection.destroy())
      await exporter.stop()
    }
  }
}

/** @param {string} file of the binary */
async function askPrometheus (file) {
  const exporterPort = await freePort()
  const prometheus = await startPrometheus({
    file,
    targets: [`127.0.0.1:${exporterPort}`],
    job: 'scraped',
    otlp: true
  })
  const exporter = await sendingExporter(`${prometheus.url}/api/v1/otlp`)
  // The configuration of Prometheus has this address, but the exporter has chosen a free port.
  const proxy = http
    .createServer(async (_, response) =>
      response.setHeader('content-type', 'text/plain; version=0.0.4').end(await exporter.metrics())
    )
    .listen(exporterPort, '127.0.0.1')
  try {
    await eventually(
      () => prometheus.query('count({job="js-heap-leak"})'),
      ([sample]) => Number(sample?.value[1]) > 50,
      30_000
    )
    await wait(5000)
    const pushed = (await prometheus.query('{__name__=~".+", job!="scraped"}')).filter(
      ({ metric }) =>
        !['target_info', 'up'].includes(metric.__name__) && !metric.__name__.startsWith('scrape_')
    )
    const names = new Set(pushed.map(({ metric }) => metric.__name__))
    console.log(`Prometheus 3 took ${pushed.length} series under ${names.size} names over OTLP`)
    report('unexpected names', [...names].filter(name => !foretold.has(name)))
    const scraped = new Map(
      (await prometheus.query('{__name__=~".+", job="scraped"}')).map(
        ({ metric: { job, instance, ...metric }, value }) => [keyOf(metric), Number(value[1])]
      )
    )
    const ours = pushed
      .filter(
        ({ metric: { __name__: name, job } }) =>
          job !== DEAD &&
          name.startsWith('memwatch_') &&
          !/^memwatch_exporter_|_bucket$|^memwatch_target_(silence|up)/.test(name)
      )
      .map(
        ({
          metric: { job, instance, memwatch_target: target, memwatch_thread: thread, ...metric },
          value
        }) => {
          const key = keyOf({ ...(target && { target, thread }), ...metric })
          return /** @type {const} */ ([key, Number(value[1])])
        }
      )
    console.log(
      `of ${ours.length} series that are ours, ` +
        `${ours.filter(([key]) => scraped.has(key)).length} were scraped, too`
    )
    report(
      'that differ',
      ours
        .filter(([key, value]) => scraped.get(key) !== value)
        .map(([key, value]) => `${key} ${value}, scraped ${scraped.get(key)}`)
    )
    const [info] = await prometheus.query('target_info{job="js-heap-leak"}')
    console.log(`target_info: ${JSON.stringify(info?.metric)}`)
    console.log(`sent: ${JSON.stringify([...exporter.exporter.state.otlp ?? []])}`)
  } finally {
    await exporter.stop()
    proxy.close()
    await prometheus.stop()
  }
}

/** @param {Record<string, string>} metric */
const keyOf = metric => JSON.stringify(Object.entries(metric).sort())

/**
 * @param {string} what
 * @param {string[]} found list of defects; empty if everything is right
 */
function report (what, found) {
  console.log(`${what}: ${found.length === 0 ? 'none' : `\n  ${found.slice(0, 20).join('\n  ')}`}`)
  if (found.length > 0) process.exitCode = 1
}

/** @param {string} file of the binary */
async function askCollector (file) {
  const [otlpPort, port] = [await freePort(), await freePort()]
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${otlpPort}` } } } },
    exporters: { debug: { verbosity: 'detailed' }, prometheus: { endpoint: `127.0.0.1:${port}` } },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: {
        metrics: { receivers: ['otlp'], exporters: ['prometheus'] },
        logs: { receivers: ['otlp'], exporters: ['debug'] }
      }
    }
  }
  const child = spawn(file, ['--config', `yaml:${JSON.stringify(config)}`], {
    stdio: ['ignore', 'pipe', 'pipe']
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', text => {
      output += text
    })
  }
  const ended = once(child, 'close')
  /** @type {Awaited<ReturnType<typeof sendingExporter>> | undefined} */
  let exporter
  try {
    await eventually(() => output, text => text.includes('Everything is ready'), 30_000)
    exporter = await sendingExporter(`http://127.0.0.1:${otlpPort}`)
    const scrape = async () =>
      (await fetch(`http://127.0.0.1:${port}/metrics`)).text().catch(() => '')
    const text = await eventually(scrape, body => body.includes('js-heap-leak'), 30_000)
    const names = new Set(
      [...text.matchAll(/^(\w+)\{/gm)]
        .map(([, name]) => name)
        .filter(name => name !== 'target_info')
    )
    console.log(`the Collector took ${names.size} names`)
    report('unexpected names', [...names].filter(name => !foretold.has(name)))
    const events = await eventually(
      () => [...output.matchAll(/EventName: (\S+)/g)].map(([, name]) => name),
      found => found.includes('memwatch.verdict') && found.includes('memwatch.death'),
      30_000
    )
    console.log(
      `${events.length} events; the first ` +
        `verdict:\n${/EventName: memwatch\.verdict[^]*?Trace ID/.exec(output)?.[0]}`
    )
    console.log(`sent: ${JSON.stringify([...exporter.exporter.state.otlp ?? []])}`)
  } finally {
    await exporter?.stop()
    child.kill()
    await ended
  }
}

/**
 * Receivers for the measured exporters, with their addresses.
 * @type {Record<string, () => Promise<{ url?: string, stop?: () => void }>>}
 */
const receivers = {
  off: async () => ({}),
  'a receiver': () =>
    receiver((request, response) => {
      request.resume().on('end', () => response.end())
    }),
  away: async () => ({ url: `http://127.0.0.1:${await freePort()}` }),
  hanging: () =>
    receiver(request => {
      request.resume()
    })
}

/** @param {http.RequestListener} answer */
async function receiver (answer) {
  const server = http.createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`, stop: () => { server.closeAllConnections(); server.close() } }
}

async function cost () {
  const seconds = Number(given.seconds)
  for (const [name, start] of Object.entries(receivers)) {
    const { url, stop } = await start()
    // Six times as often as by default, so that one minute is enough.
    const exporter = await spawnExporter({
      args: url ? ['--otlp', url] : [],
      env: { OTEL_METRIC_EXPORT_INTERVAL: '10000' }
    })
    const feeder = fork(path.join(__dirname, 'exporter-feeder.js'), [
      exporter.socket.path,
      given.targets,
      String(seconds + 60),
      '1'
    ])
    await once(feeder, 'message')
    await wait(20_000)
    const cpu = () => {
      const fields = fs
        .readFileSync(`/proc/${exporter.pid}/stat`, 'latin1')
        .split(') ')[1]
        .split(' ')
      return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS
    }
    const [before, began] = [cpu(), performance.now()]
    const rss = []
    for (let second = 0; second < seconds; second++) {
      await wait(1000)
      rss.push(rssOf(exporter.pid))
    }
    const busy = (cpu() - before) / (performance.now() - began) * 1000
    const counts = [
      ...(await (await fetch(`${exporter.url}/metrics`)).text()).matchAll(
        /otlp_exports_total\{signal="metrics",outcome="(\w+)"\} (\d+)/g
      )
    ].map(([, outcome, count]) => `${outcome} ${count}`)
    console.log(
      `${name.padEnd(10)} ${given.targets} targets: ${(100 * busy).toFixed(1)} % of a core, RSS ` +
        `${Math.round(Math.min(...rss) / 2 ** 20)} to ${Math.round(Math.max(...rss) / 2 ** 20)} ` +
          `MiB, at last ${Math.round(rss[rss.length - 1] / 2 ** 20)}; ${counts.join(', ')}`
    )
    feeder.kill()
    await exporter.stop()
    stop?.()
  }
}

async function main () {
  if (given.only !== 'cost') {
    const prometheus = buildPrometheus()
    const collector = buildCollector()
    if (prometheus) await askPrometheus(prometheus)
    if (collector) await askCollector(collector)
    if (!prometheus || !collector) {
      console.log(
        `${[!prometheus && 'Prometheus', !collector && 'the Collector'].filter(Boolean).join(' and ')} could not be built: Go 1.26 and the Go module proxy are needed`
      )
      process.exitCode = CANNOT_RUN
    }
  }
  if (given.only !== 'names') await cost()
}

main()
