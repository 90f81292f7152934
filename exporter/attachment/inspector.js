'use strict'

const http = require('node:http')
const net = require('node:net')
const { setTimeout: wait } = require('node:timers/promises')
const WebSocket = require('ws')
const { checkNetwork, connectInside } = require('./connect')
const { closeInspector, expressionOf, guardInspector } = require('./in-target')
const { listenersAround } = require('./listeners')

/** Default port of the inspector in Node.js. */
const DEFAULT_PORT = 9229
/** Time limit of the wait for a port that other programs use. */
const TURN_MS = 10_000
/**
 * Time limit for the process to open its inspector: a busy process on a busy machine took more than
 * ten seconds, and an inspector that opens later stays open.
 */
const OPEN_MS = 20_000
/** Time limit of each answer. */
const ANSWER_MS = 10_000
const POLL_MS = 10
/** Time after which the process closes its inspector by itself, even if this program is killed. */
const GUARD_MS = 30_000
/**
 * Size limit of an answer, because the process is untrusted. A real answer has some hundred bytes.
 */
const MAX_ANSWER_BYTES = 1_048_576

/** @typedef {import('./subject').Subject} Subject */
/** @typedef {{ answer?: any, error?: string }} Answer error: error of the evaluation, as text */

/**
 * Opens the inspector of a process by SIGUSR1, and closes it after the work. The process answers
 * between two turns of its event loop. This function enables no domain of the protocol that would
 * slow the process down.
 * @template Result
 * @param {Subject} subject a checked process
 * @param {(inspector: Inspector) => Promise<Result>} work
 * @returns {Promise<Result>}
 * @throws {import('./refusal').Refusal}
 */
async function withInspector (subject, work) {
  await checkNetwork(subject)
  const turn = await takeTurn(subject)
  /** @type {Inspector | undefined} */
  let inspector
  try {
    inspector = new Inspector(subject, await open(subject))
    await inspector.start()
    return await work(inspector)
  } finally {
    await inspector?.close()
    turn.close()
  }
}

/**
 * @param {Subject} subject
 * @returns {number} port that its inspector will open; 0 for any port
 */
function portOf ({ options }) {
  const texts = options.flatMap((option, i) => {
    const match = /^--(?:inspect-port|debug-port)(?:=(.*))?$/.exec(option)
    return match ? match[1] ?? options[i + 1] ?? '' : []
  })
  const port = /(\d+)$/.exec(texts.at(-1) ?? '')?.[1]
  return port === undefined ? DEFAULT_PORT : Number(port)
}

/**
 * Waits until no other program uses the port in the network namespace of the process. Programs of
 * memwatch take turns by listening on an abstract socket name, which the kernel frees when its
 * holder ends.
 * @param {Subject} subject
 * @returns {Promise<net.Server>} lock, to be closed
 * @throws {import('./refusal').Refusal}
 */
async function takeTurn (subject) {
  const port = portOf(subject)
  for (const began = performance.now(); ; await wait(POLL_MS)) {
    const listener = port === 0
      ? undefined
      : listenersAround(subject.pid).find(listener => listener.port === port)
    if (listener?.isOwn) {
      subject.refuse(
        `listens on port ${port} already: its inspector is open, and may be in use; end the ` +
          'debugger, or let the app call inspector.close()'
      )
    }
    const turn = listener ? undefined : await holdName(`\0memwatch-inspector-${port}`)
    if (turn) return turn
    if (performance.now() - began > TURN_MS) {
      subject.refuse(
        `needs port ${port} for its inspector, but another process listens there: end that ` +
          'process, or start the app with another --inspect-port'
      )
    }
  }
}

/**
 * @param {string} name name in Linux's abstract socket namespace
 * @returns {Promise<net.Server | undefined>} undefined if another program holds the name
 */
const holdName = name => new Promise(resolve => {
  const server = net.createServer(socket => socket.destroy())
  server.once('error', () => resolve(undefined))
  server.listen(name, () => resolve(server.unref()))
})

/**
 * @param {Subject} subject
 * @returns {Promise<string>} URL of the inspector of the process
 * @throws {import('./refusal').Refusal}
 */
async function open (subject) {
  const before = new Set(listenersAround(subject.pid).map(({ inode }) => inode))
  const port = portOf(subject)
  subject.checkSignal()
  try {
    process.kill(subject.pid, 'SIGUSR1')
  } catch (error) {
    subject.refuse(`accepts no signal from this user: ${/** @type {Error} */ (error).message}`)
  }
  for (const began = performance.now(); performance.now() - began < OPEN_MS;) {
    if (!subject.isSame()) subject.refuse('has ended')
    const opened = listenersAround(subject.pid).filter(listener =>
      listener.isOwn && !before.has(listener.inode) && (port === 0 || listener.port === port))
    for (const address of opened) {
      const url = await readUrl(subject, address).catch(() => undefined)
      if (url !== undefined) return url
    }
    await wait(POLL_MS)
  }
  return subject.refuse(
    `has not opened its inspector within ${OPEN_MS / 1000} s: its event loop is blocked, or ` +
      'its inspector is open on another port. An inspector that opens later stays open on ' +
      'loopback until the process ends or calls inspector.close()'
  )
}

/**
 * @param {Subject} subject
 * @param {import('./listeners').Listener} address
 * @returns {Promise<string>}
 */
const readUrl = (subject, address) => new Promise((resolve, reject) => {
  const request = http.get({
    path: '/json/list',
    headers: { host: '127.0.0.1' },
    timeout: ANSWER_MS,
    createConnection: () => /** @type {any} */ (connectInside(subject, address))
  }, response => {
    let text = ''
    response.setEncoding('utf8').on('data', part => {
      text += part
      if (text.length > MAX_ANSWER_BYTES) request.destroy()
    })
    response.on('error', reject).on('end', () => {
      try {
        const { pathname } = new URL(JSON.parse(text)[0].webSocketDebuggerUrl)
        const host = address.host.includes(':') ? `[${address.host}]` : address.host
        resolve(`ws://${host}:${address.port}${pathname}`)
      } catch (error) {
        reject(error)
      }
    })
  })
  request.on('error', reject).on('timeout', () => request.destroy())
})

/** A connection to the inspector of a process. */
class Inspector {
  #subject
  #port
  #socket
  #id = 0
  /** Calls without an answer, by id. @type {Map<number | string, (message: any) => void>} */
  #open = new Map()
  /** Ids of the inspector sessions of the process's workers. @type {string[]} */
  #workers = []
  /** Version of Node.js in the process. */
  node = ''

  /**
   * @param {Subject} subject
   * @param {string} url
   */
  constructor (subject, url) {
    const { hostname, port } = new URL(url)
    this.#subject = subject
    this.#port = Number(port)
    const address = { host: hostname.replace(/^\[|\]$/g, ''), port: this.#port }
    this.#socket = new WebSocket(url, {
      createConnection: () => /** @type {any} */ (connectInside(subject, address)),
      handshakeTimeout: ANSWER_MS,
      maxPayload: MAX_ANSWER_BYTES,
      perMessageDeflate: false
    })
    this.#socket.on('message', text => this.#read(text.toString()))
    this.#socket.on('close', () => this.#lose())
    this.#socket.on('error', () => this.#lose())
  }

  /** @throws {import('./refusal').Refusal} */
  async start () {
    await new Promise(resolve => this.#socket.once('open', resolve).once('close', resolve))
    const { answer, error } = await this.evaluate(guardInspector, { afterMs: GUARD_MS })
    if (error) this.#subject.refuse(`does not answer: ${error}`)
    if (answer.pid !== this.#subject.ownPid) {
      this.#subject.refuse('does not answer on its port, but another process does: try again')
    }
    if (answer.runtime) this.#subject.refuse(`runs ${answer.runtime}: memwatch reads Node.js only`)
    this.node = String(answer.node)
  }

  /**
   * Runs a function of in-target.js in the main thread.
   * @template {(require: NodeRequire, given: any) => object} Work
   * @param {Work} work
   * @param {Parameters<Work>[1]} [given]
   * @returns {Promise<Answer>}
   */
  async evaluate (work, given) {
    return answerOf(await this.#call('Runtime.evaluate', evaluation(work, given)))
  }

  /**
   * Runs a function of in-target.js in each worker that exists.
   * @template {(require: NodeRequire, given: any) => object} Work
   * @param {Work} work
   * @param {Parameters<Work>[1]} [given]
   * @returns {Promise<Answer[]>} one answer for each worker
   */
  async evaluateInWorkers (work, given) {
    // Node.js reports all existing workers before it answers this call.
    await this.#call('NodeWorker.enable', { waitForDebuggerOnStart: false })
    const workers = this.#workers.splice(0)
    return await Promise.all(workers.map(async sessionId => {
      const id = ++this.#id
      const params = evaluation(work, given)
      const message = JSON.stringify({ id, method: 'Runtime.evaluate', params })
      const answered = this.#answerTo(`${sessionId} ${id}`)
      await this.#call('NodeWorker.sendMessageToWorker', { sessionId, message })
      const answer = answerOf(await answered)
      // Otherwise Node.js retains the session, with its scripts, after the inspector has closed.
      await this.#call('NodeWorker.detach', { sessionId })
      return answer
    }))
  }

  /**
   * Makes the process close its inspector. A blocked process closes it when its event loop runs
   * again.
   */
  async close () {
    await this.evaluate(closeInspector)
    this.#socket.terminate()
    const isOpen = () => listenersAround(this.#subject.pid)
      .some(({ isOwn, port }) => isOwn && port === this.#port)
    for (const began = performance.now(); isOpen(); await wait(POLL_MS)) {
      if (performance.now() - began > ANSWER_MS) return
    }
  }

  /**
   * @param {string} method
   * @param {object} params
   * @returns {Promise<any>} message of the protocol; undefined if none arrived
   */
  #call (method, params) {
    const id = ++this.#id
    const answered = this.#answerTo(id)
    if (this.#socket.readyState === WebSocket.OPEN) {
      this.#socket.send(JSON.stringify({ id, method, params }))
    } else {
      this.#lose()
    }
    return answered
  }

  /** @param {number | string} id */
  #answerTo (id) {
    return new Promise(resolve => {
      const timer = setTimeout(() => settle(undefined), ANSWER_MS)
      const settle = (/** @type {any} */ message) => {
        clearTimeout(timer)
        this.#open.delete(id)
        resolve(message)
      }
      this.#open.set(id, settle)
    })
  }

  /** @param {string} text */
  #read (text) {
    const { id, method, params } = parse(text)
    if (id !== undefined) this.#open.get(id)?.(parse(text))
    else if (method === 'NodeWorker.attachedToWorker') this.#workers.push(String(params?.sessionId))
    else if (method === 'NodeWorker.receivedMessageFromWorker') {
      const message = parse(String(params?.message))
      this.#open.get(`${params?.sessionId} ${message.id}`)?.(message)
    }
  }

  #lose () {
    for (const settle of this.#open.values()) settle(undefined)
  }
}

/**
 * @param {string} text text received from the process
 * @returns {{ id?: number, method?: string, params?: Record<string, unknown>, result?: any }}
 */
function parse (text) {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}

/**
 * @param {(require: NodeRequire, given: any) => object} work
 * @param {unknown} [given]
 */
const evaluation = (work, given) => ({
  expression: expressionOf(work, given),
  includeCommandLineAPI: true,
  awaitPromise: true,
  returnByValue: true
})

/**
 * @param {any} message message of the protocol
 * @returns {Answer}
 */
function answerOf (message) {
  if (message === undefined) return { error: 'no answer came' }
  const { exceptionDetails, result } = message.result ?? {}
  const answer = parse(String(result?.value))
  const thrown = exceptionDetails?.exception?.description ?? exceptionDetails?.text
  const error = thrown ?? /** @type {any} */ (answer).error ?? message.error?.message
  return error === undefined ? { answer } : { error: String(error).split('\n', 1)[0] }
}

module.exports = { withInspector, ANSWER_MS }
