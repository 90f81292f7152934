'use strict'

const path = require('node:path')
const { stringifyJson } = require('../primordials')
const { defaultSocketPath } = require('./socket')
const { POD_NAMES } = require('./text-rules')

/** @param {string} text */
function readBoolean (text) {
  if (!['0', '1', 'true', 'false'].includes(text)) throw new Error('expected 0 or 1')
  return text === '1' || text === 'true'
}

/**
 * @template {string} Word
 * @param {...Word} words
 * @returns {(text: string) => Word}
 */
const oneOf = (...words) => text => {
  const word = words.find(known => known === text)
  if (!word) throw new Error(`expected ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`)
  return word
}
/** @param {string} text */
const readSwitch = text => oneOf('on', 'off')(text) === 'on'

/**
 * @param {RegExp} pattern
 * @returns {(text: string) => string} reader of a Kubernetes name; empty: none
 */
const readPodName = pattern => text => {
  if (text !== '' && !pattern.test(text)) {
    throw new Error('expected lower-case letters, digits and -, as in names of Kubernetes')
  }
  return text
}

/**
 * All options of the agent. All are environment variables: a preload has no command line. `read`
 * throws an Error that names the accepted values.
 */
const options = Object.freeze({
  socket: {
    env: 'MEMWATCH_SOCKET',
    default: defaultSocketPath(),
    help: 'address of the exporter: a path, or tcp://HOST:PORT',
    /**
     * @param {string} text
     * @returns {{ path: string } | { host: string, port: number }}
     */
    read (text) {
      if (!text.startsWith('tcp://')) return { path: path.resolve(text) }
      const match = /^tcp:\/\/(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):(\d{1,5})$/.exec(text)
      if (!match || Number(match[2]) > 65535) throw new Error('expected a path or tcp://HOST:PORT')
      return { host: match[1].replace(/^\[|\]$/g, ''), port: Number(match[2]) }
    }
  },
  name: {
    env: 'MEMWATCH_NAME',
    default: '',
    help: 'name of the app; default: name of the nearest package.json, else of the script; ' +
      'programs of node_modules that run an app get its name',
    /** @param {string} text */
    read (text) {
      if (text.length > 128) throw new Error('expected at most 128 characters')
      return text
    }
  },
  intervalSeconds: {
    env: 'MEMWATCH_INTERVAL_SECONDS',
    default: '1',
    help: 'seconds between frames, 0.1 to 60',
    /** @param {string} text */
    read (text) {
      const seconds = Number(text)
      if (!(seconds >= 0.1 && seconds <= 60)) throw new Error('expected a number from 0.1 to 60')
      return seconds
    }
  },
  allocatorAccess: {
    env: 'MEMWATCH_ALLOCATOR_ACCESS',
    default: 'off',
    help: 'read lets the agent ask malloc for statistics (package @memwatch/allocator, or ' +
      'node:ffi); trim also lets memwatch trim return free memory to the system; memwatch run ' +
      'and try set read by default',
    read: oneOf('off', 'read', 'trim')
  },
  captures: {
    env: 'MEMWATCH_CAPTURES',
    default: 'on',
    help: 'off refuses all captures, including those that the exporter starts by itself',
    read: readSwitch
  },
  allowSnapshot: {
    env: 'MEMWATCH_ALLOW_SNAPSHOT',
    default: '0',
    help: '1 allows heap snapshots: they contain all strings of the app, secrets too, and block ' +
      'it for seconds',
    read: readBoolean
  },
  forcedGc: {
    env: 'MEMWATCH_FORCED_GC',
    default: 'off',
    help: 'allow lets the exporter request full GCs if a leak check lacks readings of the live ' +
      'heap: at most 2 % of the time; memwatch run and try set allow by default. often: a ' +
      'quarter, for gates',
    read: oneOf('off', 'allow', 'often')
  },
  gcHooks: {
    env: 'MEMWATCH_GC_HOOKS',
    default: 'on',
    help: "on counts GCs in V8's own callbacks, if the package @memwatch/allocator is installed; " +
      'off counts them by PerformanceObserver, which takes 40 to 100 µs of CPU for each',
    read: readSwitch
  },
  tokenFile: {
    env: 'MEMWATCH_TOKEN_FILE',
    default: '',
    help: 'file with the token of the exporter: the agent then accepts commands only with it; ' +
      'without one, other users must not be able to write to the folder of the socket',
    /** @param {string} text */
    read: text => text
  },
  podName: {
    env: 'MEMWATCH_POD_NAME',
    default: '',
    help: 'name of the pod, by the downward API (metadata.name)',
    read: readPodName(POD_NAMES.name)
  },
  podNamespace: {
    env: 'MEMWATCH_POD_NAMESPACE',
    default: '',
    help: 'namespace of the pod (metadata.namespace)',
    read: readPodName(POD_NAMES.namespace)
  },
  podUid: {
    env: 'MEMWATCH_POD_UID',
    default: '',
    help: 'UID of the pod (metadata.uid)',
    read: readPodName(POD_NAMES.uid)
  },
  container: {
    env: 'MEMWATCH_CONTAINER',
    default: '',
    help: 'name of the container: distinguishes the containers of a pod, and memwatch fix needs it',
    read: readPodName(POD_NAMES.container)
  },
  injected: {
    env: 'MEMWATCH_INJECTED',
    default: '0',
    help: '1: an admission policy added the agent, and memwatch fix leaves the preload to it',
    read: readBoolean
  },
  memoryLimitBytes: {
    env: 'MEMWATCH_MEMORY_LIMIT_BYTES',
    default: '0',
    help: 'memory limit of the container in bytes, by the downward API (limits.memory); used if ' +
      'the cgroup is unreadable; 0: none',
    /** @param {string} text */
    read (text) {
      if (!/^\d{1,19}$/.test(text)) throw new Error('expected a whole number of bytes')
      return Number(text)
    }
  },
  disabled: {
    env: 'MEMWATCH_DISABLED',
    default: '0',
    help: '1 turns the agent off',
    read: readBoolean
  }
})

/**
 * @typedef {{ [Name in keyof typeof options]: ReturnType<typeof options[Name]['read']> }} Config
 */

/**
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Config}
 * @throws {Error} names the variable with the wrong value
 */
function readConfig (env = process.env) {
  return /** @type {Config} */ (Object.fromEntries(Object.entries(options).map(([name, option]) => {
    try {
      return [name, option.read(env[option.env] || option.default)]
    } catch (error) {
      const { message } = /** @type {Error} */ (error)
      throw new Error(`${option.env}: ${message}, got ${stringifyJson(env[option.env])}`)
    }
  })))
}

module.exports = { options, readConfig }
