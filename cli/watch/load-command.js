'use strict'

const fs = require('node:fs')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { workOfLoad } = require('../comparison/work-of')

/**
 * Time after which a reporting app is considered up although it does not listen: it may be a worker
 * of a queue.
 */
const UP_AFTER_MS = 15_000
/** Time from SIGINT to SIGKILL for a load. */
const GRACE_MS = 5000
/** Statuses of a shell for a command that is missing or not executable. */
const NOT_STARTED = [126, 127]

/**
 * A load generator that starts once the app is up, which means that one of its processes listens.
 * It runs beside the app, without the agent and outside its memory cgroup.
 */
class LoadCommand {
  #words
  #file
  #env
  #abort = new AbortController()
  /** @type {Promise<void>} */
  #ended

  /**
   * @param {string} words command line for a shell
   * @param {object} options
   * @param {string} options.file file for its stdout
   * @param {import('@memwatch/exporter/exporter').Exporter} options.exporter exporter that watches
   *   the app
   * @param {(text: string) => void} options.say
   * @param {(error?: LoadError) => void} options.onEnd called when the load has ended, or could not
   *   be started
   * @param {NodeJS.ProcessEnv} [options.env]
   */
  constructor (words, { file, exporter, say, onEnd, env = process.env }) {
    this.#words = words
    this.#file = file
    this.#env = { ...env, MEMWATCH_DISABLED: '1' }
    this.#ended = this.#run(exporter, say).then(() => onEnd(), onEnd)
  }

  /** @returns {import('@memwatch/engine/recording/format').Work | undefined} */
  get work () {
    return fs.existsSync(this.#file) ? workOfLoad(fs.readFileSync(this.#file, 'utf8')) : undefined
  }

  /** Ends the load if it still runs. */
  async stop () {
    this.#abort.abort()
    await this.#ended
  }

  /**
   * @param {import('@memwatch/exporter/exporter').Exporter} exporter
   * @param {(text: string) => void} say
   */
  async #run (exporter, say) {
    await isUp(exporter, this.#abort.signal)
    if (this.#abort.signal.aborted) return
    say(`the app is up; load: ${this.#words}`)
    const stdout = fs.openSync(this.#file, 'w')
    // The command gets a process group of its own, because a shell does not forward signals.
    const child = spawn(this.#words, {
      shell: true,
      detached: true,
      env: this.#env,
      stdio: ['ignore', stdout, 'inherit']
    })
    fs.closeSync(stdout)
    /** @type {NodeJS.Timeout | undefined} */
    let timer
    const end = () => {
      kill(child, 'SIGINT') // On SIGINT autocannon, wrk and hey print their results so far.
      timer = setTimeout(() => kill(child, 'SIGKILL'), GRACE_MS)
    }
    this.#abort.signal.addEventListener('abort', end)
    const [code, signal] = await once(child, 'close').finally(() => clearTimeout(timer))
    this.#abort.signal.removeEventListener('abort', end)
    if (this.#abort.signal.aborted) return say('the load was ended with the app')
    if (NOT_STARTED.includes(code)) {
      throw new LoadError(`--load: cannot run ${JSON.stringify(this.#words)}: the shell exited with status ${code}`)
    }
    say(
      'the load has ' +
        `ended${code === 0 ? '' : `, ${signal ? `by ${signal}` : `with status ${code}`}`}`
    )
  }
}

/** Error for a load that could not be started. */
class LoadError extends Error {}

/**
 * @param {import('@memwatch/exporter/exporter').Exporter} exporter
 * @param {AbortSignal} signal
 * @returns {Promise<void>} resolves when a process of the app listens on TCP, or has run for some
 *   time without listening, or when the wait is aborted
 */
function isUp (exporter, signal) {
  return new Promise(resolve => {
    /** @type {NodeJS.Timeout | undefined} */
    let timer
    const done = () => {
      exporter.off('frame', look)
      signal.removeEventListener('abort', done)
      clearTimeout(timer)
      resolve()
    }
    /** @param {import('@memwatch/engine/history/target').Target} target */
    const look = ({ values }) => {
      timer ??= setTimeout(done, UP_AFTER_MS)
      if (values.resources?.TCPServerWrap) done()
    }
    exporter.on('frame', look)
    signal.addEventListener('abort', done)
  })
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {NodeJS.Signals} signal signal for its whole process group
 */
function kill ({ pid }, signal) {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch {} // The process has just ended.
}

module.exports = { LoadCommand }
