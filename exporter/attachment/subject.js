'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const {
  describeProcess, isMemwatch, isStarter, preloadsAgent, settingsOf, viewProcess
} = require('../process/process-view')
const { listensTo } = require('./libuv-signals')
const { NotFound, Refusal } = require('./refusal')

const { SIGUSR1 } = os.constants.signals
/** Runtimes that react differently to SIGUSR1. */
const OTHER_RUNTIMES = /^(bun|deno)/
const OPENS_INSPECTOR = /^--inspect(-brk|-wait)?(=|$)/

/** A process to which memwatch may attach, read from the kernel. */
class Subject {
  /** Start time in ticks, which together with the pid identifies the process. */
  startTimeTicks
  /** Text for people, without arguments. */
  name
  #view

  /**
   * @param {number} pid
   * @throws {NotFound} if there is no such process
   */
  constructor (pid) {
    const view = viewProcess(pid)
    if (!view) throw new NotFound(`process ${pid} does not exist, or is not visible from here`)
    this.pid = pid
    this.#view = view
    this.name = describeProcess(view)
    this.startTimeTicks = Number(this.#stat()[22 - 3])
  }

  /** Start of the process by the wall clock. The kernel counts 100 ticks per second since boot. */
  get startedAtUnixMs () {
    return Date.now() - 1000 * (os.uptime() - this.startTimeTicks / 100)
  }

  /** Effective user id. */
  get user () {
    return this.#view.user
  }

  /** Effective group id, and supplementary ones. */
  get groups () {
    return this.#view.groups
  }

  /** Its pid in its own process namespace. */
  get ownPid () {
    return Number(this.#statusLine('NSpid').split(/\s+/).at(-1) || this.pid)
  }

  /** Environment at its start; null if not readable by this user. */
  get env () {
    return this.#view.env
  }

  /** False for memwatch's own command line and exporter. */
  get isApp () {
    return !isMemwatch(this.#view)
  }

  /** True if its options preload the agent. */
  get preloadsAgent () {
    return preloadsAgent(settingsOf(this.#view))
  }

  /** Program and script of its command line, without values that may be secret. */
  get command () {
    const [, words = this.name] = /\((.*)\)$/.exec(this.name) ?? []
    return words.split(' ')
  }

  /** Its Node.js options, as far as they are readable; later options win. */
  get options () {
    const settings = settingsOf(this.#view)
    const { env } = this.#view
    return [...splitNodeOptions(env?.NODE_OPTIONS ?? ''), ...settings?.execArgv ?? []]
  }

  /**
   * Converts a path of the process to a path of this program.
   * @param {string} file absolute path
   */
  outside (file) {
    return this.sharesNamespace('mnt') ? file : path.join(`/proc/${this.pid}/root`, file)
  }

  /**
   * Converts a path of this program to a path of the process.
   * @param {string} file path of this program
   */
  inside (file) {
    const root = `/proc/${this.pid}/root`
    return file.startsWith(`${root}/`) ? file.slice(root.length) : file
  }

  /** @param {'mnt' | 'net'} name */
  sharesNamespace (name) {
    return readLink(`/proc/${this.pid}/ns/${name}`) === readLink(`/proc/self/ns/${name}`)
  }

  /** @returns {boolean} false if the process has ended, even if another process has its pid now */
  isSame () {
    try {
      return Number(this.#stat()[22 - 3]) === this.startTimeTicks
    } catch {
      return false
    }
  }

  /**
   * Checks everything that is visible before a signal is sent.
   * @param {{ assumeDefaultSigusr1?: boolean }} [options] assumeDefaultSigusr1: true if the user
   *   states that the app does not listen to SIGUSR1
   * @throws {Refusal} names the first reason
   */
  check ({ assumeDefaultSigusr1 = false } = {}) {
    this.#checkProgram()
    this.#checkUser()
    this.#checkOptions()
    this.checkSignal()
    const listens = assumeDefaultSigusr1 ? false : listensTo(this.pid, SIGUSR1)
    if (listens) {
      this.refuse(
        'listens to SIGUSR1 itself, so that the signal would not open the inspector: start it ' +
          'with node -r memwatch/agent instead'
      )
    }
    if (listens === undefined) {
      this.refuse(
        'may listen to SIGUSR1 itself, and memwatch cannot read this from its memory; run as ' +
          'root, or add --assume-default-sigusr1 if the app has no such listener'
      )
    }
  }

  /**
   * Checks that Node.js catches SIGUSR1, which would otherwise end the process. The check is
   * repeated right before the signal is sent.
   * @throws {Refusal}
   */
  checkSignal () {
    if (!this.isSame()) this.refuse('has ended')
    if (this.#hasSignal('SigBlk')) {
      this.refuse('blocks SIGUSR1, as Node.js does while it starts: try again in a moment')
    }
    if (!this.#hasSignal('SigCgt')) {
      this.refuse(
        'does not catch SIGUSR1, so the signal would end it: it may still be starting, or its ' +
          'listener was removed; start it with node -r memwatch/agent instead'
      )
    }
  }

  /**
   * @param {string} reason end of a sentence whose subject is the process
   * @returns {never}
   * @throws {Refusal}
   */
  refuse (reason) {
    throw new Refusal(`${this.name} ${reason}`)
  }

  #checkProgram () {
    const program = path.basename(readLink(`/proc/${this.pid}/exe`) ?? this.#view.argv?.[0] ?? '')
    if (OTHER_RUNTIMES.test(program)) {
      this.refuse(`runs ${program}: memwatch reads V8 through Node.js only`)
    }
    if (!this.#view.isNode) {
      this.refuse('is not a Node.js process: memwatch doctor lists the visible ones')
    }
    if (isStarter(this.#view)) {
      this.refuse('only starts the app: attach to the process that it has started')
    }
  }

  #checkUser () {
    const own = process.geteuid?.()
    if (own !== 0 && this.user !== own) {
      this.refuse(`belongs to user ${this.user}: run memwatch as that user or as root`)
    }
    if (!this.#view.env || readLink(`/proc/${this.pid}/root`) === undefined) {
      this.refuse('cannot be inspected by this user: run memwatch as root')
    }
    if (this.#stat()[0] === 'T' || this.#stat()[0] === 't') {
      this.refuse('is stopped and cannot answer: continue it with kill -CONT first')
    }
  }

  #checkOptions () {
    const { options } = this
    const option = options.findLast(option => OPENS_INSPECTOR.test(option))
    if (option) {
      this.refuse(
        `was started with ${option}, so its inspector may be in use: end the debugger, and start ` +
          'the app without that option'
      )
    }
    // Node.js also blocks SIGUSR1 under the permission model.
    if (options.some(option => /^--(experimental-)?permission$/.test(option))) {
      this.refuse(
        'runs under the permission model of Node.js, which denies the inspector: start it with ' +
          'node -r memwatch/agent instead'
      )
    }
    if (options.includes('--disable-sigusr1')) {
      this.refuse(
        'was started with --disable-sigusr1, so memwatch cannot open its inspector: start it ' +
          'with node -r memwatch/agent instead'
      )
    }
  }

  /** @param {'SigCgt' | 'SigBlk'} name */
  #hasSignal (name) {
    return Boolean(BigInt(`0x${this.#statusLine(name) || '0'}`) >> BigInt(SIGUSR1 - 1) & 1n)
  }

  /** @param {string} name name of a line in proc_pid_status(5) */
  #statusLine (name) {
    try {
      const text = fs.readFileSync(`/proc/${this.pid}/status`, 'latin1')
      return new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(text)?.[1] ?? ''
    } catch {
      return ''
    }
  }

  /** Fields from the third one on, after the name in parentheses: proc_pid_stat(5). */
  #stat () {
    const text = fs.readFileSync(`/proc/${this.pid}/stat`, 'latin1')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  }
}

/** @param {string} file */
function readLink (file) {
  try {
    return fs.readlinkSync(file)
  } catch {
    return undefined // The file is gone, or not readable by this user.
  }
}

module.exports = { Subject }
