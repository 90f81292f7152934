'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { options: agentOptions } = require('@memwatch/agent/protocol/config')
const { CommandError } = require('@memwatch/exporter/commands/commands')
const { flagsInForce } = require('@memwatch/engine/v8/flags')
const { workOfApp } = require('../comparison/work-of')
const { LoadCommand } = require('../watch/load-command')
const { tailOf } = require('../watch/output-tail')
const { watchCommand } = require('../watch/watch-command')

/**
 * Number of readings that a run needs. Each reading takes a frame and a full GC. A run continues
 * until it has them, at most for `stretch` times its length or for a minute, whichever is longer:
 * on a busy machine Node.js itself may take long to start.
 */
const ENOUGH = Object.freeze({ readings: 24, stretch: 3, seconds: 60 })
/**
 * Bounds of the time between two readings: the agent's lower bound, and the interval of an ordinary
 * run.
 */
const INTERVAL_SECONDS = Object.freeze({ least: 0.1, most: 1 })

/**
 * @typedef {import('./measures').GateRun} GateRun
 *
 * @typedef {object} Plan settings that are the same for each run
 * @property {string[]} command
 * @property {number} forSeconds
 * @property {string} [load] command of a load generator, for a shell
 * @property {string} folder for output
 * @property {AbortSignal} abort ends the running command
 * @property {(text: string) => void} say
 * @property {NodeJS.ProcessEnv} [env] default: that of this process
 */

/**
 * Runs the command once. The agent sends a frame, then runs a full GC on command, so that the next
 * frame has the live heap.
 * @param {Plan} plan
 * @param {number} number number of the run, from 1
 * @returns {Promise<{ run?: GateRun, fit?: import('./baseline').Fit, spawnError?:
 *   NodeJS.ErrnoException, loadError?: Error, exit: { code: number | null, signal: string | null },
 *   endedByUs: boolean }>} run and fit: absent if no process reported
 */
async function gateRun (plan, number) {
  const { command, forSeconds, load: words, folder, abort, say } = plan
  const file = path.join(folder, String(number))
  const output = fs.openSync(`${file}.out`, 'w')
  const readers = new Readers()
  const over = new AbortController()
  /** @type {LoadCommand | undefined} */
  let load
  /** @type {Error | undefined} */
  let loadError
  /** @type {import('@memwatch/engine/recording/format').Work | undefined} */
  let work
  try {
    const { report: { exit }, endedByUs, spawnError } = await watchCommand({
      command,
      forSeconds: Math.max(ENOUGH.seconds, ENOUGH.stretch * forSeconds),
      abort: AbortSignal.any([abort, over.signal]),
      env: {
        ...(plan.env ?? process.env),
        [agentOptions.forcedGc.env]: 'often',
        [agentOptions.intervalSeconds.env]: String(intervalSeconds(forSeconds))
      },
      stdout: output,
      workOf: async () => {
        await load?.stop()
        work = load?.work ?? workOfApp(tailOf(`${file}.out`))
        return work
      },
      onStart: exporter => {
        exporter.on('frame', target => {
          const { seconds, readings } = readers.read(target, exporter)
          if (seconds >= forSeconds && readings >= ENOUGH.readings) over.abort()
        })
        if (words === undefined) return
        load = new LoadCommand(words, {
          file: `${file}.load.out`,
          exporter,
          say,
          onEnd: error => {
            loadError = error
            if (error) over.abort()
          }
        })
      }
    }).finally(() => load?.stop())
    return { ...readers.result(work), exit, endedByUs, spawnError, loadError }
  } finally {
    fs.closeSync(output)
  }
}

/** @param {number} forSeconds */
const intervalSeconds = forSeconds => Math.min(
  INTERVAL_SECONDS.most, Math.max(INTERVAL_SECONDS.least, forSeconds / ENOUGH.readings)
)

/** @param {import('@memwatch/engine/history/target').Target} target */
const cpuSeconds = ({ values: { cpuUserSeconds = 0, cpuSystemSeconds = 0 } }) =>
  cpuUserSeconds + cpuSystemSeconds

/** Reads the main threads of a run. The process with the most CPU time is the app. */
class Readers {
  /** @type {Map<import('@memwatch/engine/history/target').Target, GateRun['readings']>} */
  #of = new Map()
  /**
   * @param {import('@memwatch/engine/history/target').Target} target after a frame
   * @param {import('@memwatch/exporter/exporter').Exporter} exporter
   * @returns {{ seconds: number, readings: number }} number of readings of this process so far
   */
  read (target, exporter) {
    const { frame, values, thread, hello } = target
    if (!frame || thread !== 'main') return { seconds: 0, readings: 0 }
    let readings = this.#of.get(target)
    if (!readings) this.#of.set(target, readings = [])
    const { liveHeapBytes, liveHeapMajors, externalBytes = 0 } = values
    if (liveHeapBytes !== undefined && liveHeapMajors !== readings.at(-1)?.majors) {
      readings.push({
        seconds: frame.uptimeSeconds,
        cpuSeconds: cpuSeconds(target),
        majors: liveHeapMajors ?? 0,
        heapBytes: liveHeapBytes,
        externalBytes
      })
    }
    if (hello.commands?.includes('force_gc')) {
      exporter.commands.carryOut(target, 'force_gc').catch(error => {
        // The agent's time budget for GCs is used up, or the process has ended.
        if (!(error instanceof CommandError)) throw error
      })
    }
    return { seconds: frame.uptimeSeconds, readings: readings.length }
  }

  /** @param {import('@memwatch/engine/recording/format').Work} [work] */
  result (work) {
    const [target] = [...this.#of.keys()].sort((a, b) => cpuSeconds(b) - cpuSeconds(a))
    if (!target?.frame) return {}
    const { values, hello, frame } = target
    return {
      run: {
        seconds: frame.uptimeSeconds,
        cpuSeconds: cpuSeconds(target),
        requests: work?.requests ?? null,
        allocatedBytes: values.heapAllocatedBytes ?? null,
        readings: /** @type {GateRun['readings']} */ (this.#of.get(target))
      },
      fit: {
        node: hello.node,
        platform: `${hello.platform}-${hello.arch}`,
        libc: hello.libc,
        flags: [...flagsInForce(hello)].map(([name, value]) => `${name}=${value}`)
          .filter(flag => !flag.startsWith('--require=')).sort(),
        heapSizeLimitBytes: values.heapSizeLimitBytes ?? 0,
        containerLimitBytes: values.containerLimitBytes ?? null,
        cores: hello.cores ?? null
      }
    }
  }
}

module.exports = { gateRun }
