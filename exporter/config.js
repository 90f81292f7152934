'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { closest, distance } = require('fastest-levenshtein')
const { defaultSocketPath } = require('@memwatch/agent/protocol/socket')
const { options: agentOptions } = require('@memwatch/agent/protocol/config')
const { readDuration } = require('@memwatch/engine/text/duration')
const { readMemory } = require('@memwatch/engine/text/quantity')
const { annotation } = require('./attachment/annotation')
const { ConfigError } = require('./config-error')
const { parseEndpoint } = require('./egress/addresses')
const { parseAddress, parseHostPort } = require('./ingest/address')
const { readOtlp } = require('./otlp/address')

/** Default port, which no other known program uses: docs/decisions/0062-default-port.md. */
const DEFAULT_PORT = 16369

/**
 * @param {string} text
 * @param {string[]} allowed
 */
function oneOf (text, allowed) {
  if (!allowed.includes(text)) {
    throw new Error(`expected one of ${allowed.join(', ')}, got ${JSON.stringify(text)}`)
  }
  return text
}

/**
 * @param {string} text
 * @param {number} least
 * @param {number} most
 */
function wholeNumber (text, least, most) {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number < least || number > most) {
    throw new Error(`expected a whole number from ${least} to ${most}, got ${JSON.stringify(text)}`)
  }
  return number
}

/** Size of the smallest data folder that has room for a full segment of each kind. */
const LEAST_DATA_BYTES = 16 * 2 ** 20

/**
 * @param {string} text
 * @returns {number} bytes
 */
function sizeOf (text) {
  const bytes = readMemory(text)
  if (bytes < LEAST_DATA_BYTES) {
    throw new RangeError(
      `expected a size of at least 16MiB, such as 256MiB, got ${JSON.stringify(text)}`
    )
  }
  return bytes
}

/**
 * @template {{ flag: string }} Row
 * @param {Row} row of a table of options
 * @returns {Row & { key: string }} key: key of the config file, derived from the flag: --data-dir
 *   becomes dataDir
 */
const withKey = row => ({
  ...row,
  key: row.flag.split(' ')[0].slice(2).replace(/-([a-z])/g, (_, letter) => letter.toUpperCase())
})

/**
 * @template {Record<string, { flag: string }>} Table
 * @param {Table} table
 * @returns {Readonly<{ [Name in keyof Table]: Table[Name] & { key: string } }>}
 */
const withKeys = table => Object.freeze(/** @type {any} */ (
  Object.fromEntries(Object.entries(table).map(([name, row]) => [name, withKey(row)]))
))

/**
 * Every option of the exporter: flag, environment variable, key in the config file, default as
 * text, and reader. The flag wins over the variable, and the variable over the file.
 */
const options = withKeys({
  listen: {
    flag: '--listen <HOST:PORT>',
    env: 'MEMWATCH_LISTEN',
    default: `127.0.0.1:${DEFAULT_PORT}`,
    help: 'address of /metrics, health and the API',
    /** @param {string} text */
    read: text => parseHostPort(text)
  },
  socket: {
    flag: '--socket <PATH|tcp://HOST:PORT>',
    env: 'MEMWATCH_SOCKET',
    default: defaultSocketPath(),
    help: 'address at which agents connect; agents read the same variable',
    /** @param {string} text */
    read: text => parseAddress(text)
  },
  socketDir: {
    flag: '--socket-dir <FOLDER>',
    env: 'MEMWATCH_SOCKET_DIR',
    default: '',
    help: 'folder with one subfolder for each pod, named by its UID. The exporter listens in ' +
      'each subfolder, so one exporter serves all pods of a node; a pod mounts only its own ' +
      'subfolder',
    /**
     * @param {string} text
     * @returns {string | undefined} absolute
     */
    read (text) {
      if (text === '') return undefined
      if (!fs.statSync(text).isDirectory()) throw new Error(`expected a folder, got ${text}`)
      return path.resolve(text)
    }
  },
  compat: {
    flag: '--compat <prom-client|off>',
    env: 'MEMWATCH_COMPAT',
    default: 'prom-client',
    help: "also serve prom-client's default metrics, under their own names",
    /** @param {string} text */
    read: text => oneOf(text, ['prom-client', 'off']) === 'prom-client'
  },
  maxTargets: {
    flag: '--max-targets <N>',
    env: 'MEMWATCH_MAX_TARGETS',
    default: '4096',
    help: 'maximum number of targets (main threads and workers) watched at once',
    /** @param {string} text */
    read: text => wholeNumber(text, 1, 100_000)
  },
  record: {
    flag: '--record <FILE>',
    env: 'MEMWATCH_RECORD',
    default: '',
    help: 'record all messages of agents in a file for memwatch diagnose; .gz compresses it',
    /** @param {string} text */
    read: text => text
  },
  dataDir: {
    flag: '--data-dir <FOLDER>',
    env: 'MEMWATCH_DATA_DIR',
    default: '',
    help: 'folder in which histories and deaths survive a restart: one value a second for ten ' +
      'minutes, one every ten seconds for six hours, one a minute for a week. Without a folder ' +
      'they exist in memory only',
    /**
     * @param {string} text
     * @returns {string | undefined} absolute
     */
    read: text => (text === '' ? undefined : path.resolve(text))
  },
  dataMax: {
    flag: '--data-max <SIZE>',
    env: 'MEMWATCH_DATA_MAX',
    default: '256MiB',
    help: 'maximum size of --data-dir, such as 64Mi or 2Gi; the exporter deletes the finest and ' +
      'oldest history first',
    /**
     * @param {string} text
     * @returns {number} bytes
     */
    read: text => sizeOf(text)
  },
  autoCaptures: {
    flag: '--auto-captures <on|off>',
    env: 'MEMWATCH_AUTO_CAPTURES',
    default: 'on',
    help: 'capture an app by rules, such as a heap profile at the first suspicion of a leak, so ' +
      'that the verdict names lines of code',
    /** @param {string} text */
    read: text => oneOf(text, ['on', 'off']) === 'on'
  },
  captureRules: {
    flag: '--capture-rules <FILE>',
    env: 'MEMWATCH_CAPTURE_RULES',
    default: '',
    help: 'JSON file with further rules of captures (docs/capture-rules.md), or the JSON array ' +
      'itself: each rule has a condition, a kind of capture and a least interval',
    /**
     * @param {string} text
     * @returns {readonly import('./captures/rules').CaptureRule[] | undefined} undefined for the
     *   built-in rules
     */
    read (text) {
      if (text === '') return undefined
      const reasons = Object.keys(require('./deaths/reasons').reasons)
      return require('./captures/read-rules').readRules(text, /** @type {any} */ (reasons))
    }
  },
  snapshotDir: {
    flag: '--snapshot-dir <FOLDER>',
    env: 'MEMWATCH_SNAPSHOT_DIR',
    default: '',
    help: 'mounted folder to which apps write heap snapshots (node ' +
      '--heapsnapshot-near-heap-limit=1 --diagnostic-dir). The exporter analyses the snapshots ' +
      'of dead processes. Default: the working folder of the process, if the exporter has the ' +
      'same mounts',
    /**
     * @param {string} text
     * @returns {string | undefined} absolute
     */
    read: text => (text === '' ? undefined : path.resolve(text))
  },
  capturesMax: {
    flag: '--captures-max <SIZE>',
    env: 'MEMWATCH_CAPTURES_MAX',
    default: '512MiB',
    help: 'maximum size of all captures; the exporter deletes the oldest first. It stores them ' +
      'in --data-dir, or without it in a temporary folder until it ends',
    /**
     * @param {string} text
     * @returns {number} bytes
     */
    read: text => sizeOf(text)
  },
  capturesKeep: {
    flag: '--captures-keep <TIME>',
    env: 'MEMWATCH_CAPTURES_KEEP',
    default: '24h',
    help: 'retention time of captures, such as 30m, 24h or 7d; a number without a unit is seconds',
    /**
     * @param {string} text
     * @returns {number} seconds
     */
    read: text => readDuration(text)
  },
  shipTo: {
    flag: '--ship-to <URL>',
    env: 'MEMWATCH_SHIP_TO',
    default: '',
    help: 'send finished captures to a folder (file:///var/captures), by HTTPS PUT ' +
      '(https://store.example.com/captures), or to S3 (s3://bucket/prefix); default: captures ' +
      'stay with the exporter',
    /** @param {string} text */
    read: text => text
  },
  shipSnapshots: {
    flag: '--ship-snapshots <on|off>',
    env: 'MEMWATCH_SHIP_SNAPSHOTS',
    default: 'off',
    help: 'on: also send heap snapshots, which contain every string of the app, also secrets',
    /** @param {string} text */
    read: text => oneOf(text, ['on', 'off']) === 'on'
  },
  shipCredentials: {
    flag: '--ship-credentials-file <FILE>',
    env: 'MEMWATCH_SHIP_CREDENTIALS_FILE',
    default: '',
    help: 'file with the credentials of --ship-to, read for each request: a bearer token, or S3 ' +
      "keys in the format of AWS's credentials file. Default for S3: AWS_ACCESS_KEY_ID, " +
      'AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment',
    /** @param {string} text */
    read: text => text
  },
  shipHttp: {
    flag: '--ship-http <on|off>',
    env: 'MEMWATCH_SHIP_HTTP',
    default: 'off',
    help: 'on: --ship-to may send to other machines without encryption (http://)',
    /** @param {string} text */
    read: text => oneOf(text, ['on', 'off']) === 'on'
  },
  s3Endpoint: {
    flag: '--s3-endpoint <URL>',
    env: 'MEMWATCH_S3_ENDPOINT',
    default: '',
    help: 'server of S3-compatible storage, such as https://minio.example.com:9000; none: AWS',
    /** @param {string} text */
    read: text => parseEndpoint(text)
  },
  s3Region: {
    flag: '--s3-region <REGION>',
    env: 'MEMWATCH_S3_REGION',
    default: 'us-east-1',
    help: 'region of the bucket',
    /** @param {string} text */
    read: text => text
  },
  token: {
    flag: '--token-file <FILE>',
    env: 'MEMWATCH_TOKEN_FILE',
    default: '',
    help: 'file with the bearer token, required from remote clients and for every action; agents ' +
      'with the same file accept commands from no other exporter',
    /**
     * @param {string} text
     * @returns {string} the token
     */
    read (text) {
      if (text === '') return ''
      const token = fs.readFileSync(text, 'utf8').trim()
      if (token === '') throw new Error(`expected a file with a token, got ${text}, which is empty`)
      return token
    }
  },
  trustLoopback: {
    flag: '--trust-loopback <on|off>',
    env: 'MEMWATCH_TRUST_LOOPBACK',
    default: 'on',
    help: 'on: clients on this machine may read without the token, and send actions if no token ' +
      'is set. Choose off behind a proxy or a service mesh that forwards remote requests without ' +
      'a header such as X-Forwarded-For',
    /** @param {string} text */
    read: text => oneOf(text, ['on', 'off']) === 'on'
  },
  webhook: {
    flag: '--webhook <URL>',
    env: 'MEMWATCH_WEBHOOK',
    default: '',
    help: 'URL that receives a POST for each change of a verdict (suspected, confirmed, over), ' +
      'for teams without Alertmanager',
    /**
     * @param {string} text
     * @returns {string}
     */
    read (text) {
      if (text !== '' && !/^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : '')) {
        throw new Error(
          `expected a URL such as https://hooks.example.com/memwatch, got ${JSON.stringify(text)}`
        )
      }
      return text
    }
  },
  webhookSecretFile: {
    flag: '--webhook-secret-file <FILE>',
    env: 'MEMWATCH_WEBHOOK_SECRET_FILE',
    default: '',
    help: 'file with the secret that signs the requests of --webhook: whsec_ and base64, or ' +
      'base64 alone, by standardwebhooks.com',
    /** @param {string} text */
    read (text) {
      if (
        text !== '' &&
        !/^(whsec_)?[A-Za-z0-9+/]{16,}={0,2}$/.test(fs.readFileSync(text, 'utf8').trim())
      ) {
        throw new Error(
          'expected a file with a secret, whsec_ and base64 or base64 alone, such as openssl rand ' +
            `-base64 32 prints; got ${text}`
        )
      }
      return text
    }
  },
  otlp: {
    flag: '--otlp <URL|env>',
    env: 'MEMWATCH_OTLP',
    default: '',
    help: 'send metrics, verdicts and deaths by OTLP (http/protobuf) to URL/v1/metrics and ' +
      'URL/v1/logs; env reads the addresses from OTEL_EXPORTER_OTLP_*. OTEL_ variables set ' +
        'headers, timeout, compression and interval. Needs the package @memwatch/otlp',
    /**
     * @param {string} text
     * @param {NodeJS.ProcessEnv} env
     */
    read: (text, env) => readOtlp(text, env)
  },
  attachOnRequest: {
    flag: '--attach-on-request <on|off>',
    env: 'MEMWATCH_ATTACH_ON_REQUEST',
    default: 'off',
    help: 'on: the page and the API list the visible processes of Node.js without an agent, and ' +
      'attach to one on request, as memwatch attach does',
    /** @param {string} text */
    read: text => oneOf(text, ['on', 'off']) === 'on'
  },
  attachAnnotated: {
    flag: '--attach-annotated <on|off>',
    env: 'MEMWATCH_ATTACH_ANNOTATED',
    default: 'off',
    help: `on: attach to processes that ask for it by ${annotation.env}=1 in their environment, ` +
      'one at a time, and once per process',
    /** @param {string} text */
    read: text => oneOf(text, ['on', 'off']) === 'on'
  },
  attachAgent: {
    flag: '--attach-agent <FOLDER>',
    env: 'MEMWATCH_ATTACH_AGENT',
    default: '',
    help: 'folder of the agent, as the processes see it, for --attach-on-request and ' +
      '--attach-annotated; none: the agent beside the exporter',
    /** @param {string} text */
    read (text) {
      if (text !== '' && !path.isAbsolute(text)) throw new Error(`expected an absolute path, got ${text}`)
      return text
    }
  },
  onFailure: {
    flag: '--on-failure <exit|stay>',
    env: 'MEMWATCH_ON_FAILURE',
    default: 'exit',
    help: 'when the exporter cannot start: exit with status 2, or stay and report the reason at ' +
      'its address, so that the pod of a sidecar stays ready',
    /** @param {string} text */
    read: text => oneOf(text, ['exit', 'stay'])
  },
  logLevel: {
    flag: '--log-level <LEVEL>',
    env: 'MEMWATCH_LOG_LEVEL',
    default: 'info',
    help: 'fatal, error, warn, info, debug, trace or silent',
    /** @param {string} text */
    read: text => oneOf(text, ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
  }
})

/** Options of commands that call an exporter, except the token file. */
const clientOptions = withKeys({
  url: {
    flag: '--url <URL>',
    env: 'MEMWATCH_URL',
    default: `http://127.0.0.1:${DEFAULT_PORT}`,
    help: "URL of the exporter's API"
  },
  config: {
    flag: '--config <FILE>',
    env: 'MEMWATCH_CONFIG',
    default: 'memwatch.config.json in the working folder, if it exists',
    help: 'JSON file with options'
  },
  prometheusToken: {
    flag: '--prometheus-token-file <FILE>',
    env: 'MEMWATCH_PROMETHEUS_TOKEN_FILE',
    default: '',
    help: 'file with the bearer token of the Prometheus that fleet and right-size query'
  }
})

/**
 * @typedef {{ [Name in keyof typeof options]: ReturnType<typeof options[Name]['read']> }} Config
 *
 * @typedef {object} ConfigFile
 * @property {string} file path as the user wrote it
 * @property {Record<string, string>} values values by key of the option, in the form of a flag's
 *   value
 */

/**
 * Chooses the value of an option: from the flag, then the variable, then the file, then the
 * default.
 * @param {{ flag: string, env: string, key: string, default: string }} option
 * @param {object} of
 * @param {string} [of.given] value of the flag
 * @param {NodeJS.ProcessEnv} [of.env]
 * @param {ConfigFile} [of.file]
 * @returns {{ text: string, from: string }} from: name of the value's origin, for errors
 */
function chooseText (option, { given, env = process.env, file }) {
  if (given !== undefined) return { text: given, from: option.flag.split(' ')[0] }
  if (env[option.env]) return { text: String(env[option.env]), from: option.env }
  const inFile = file?.values[option.key]
  return inFile === undefined
    ? { text: option.default, from: option.env }
    : { text: inFile, from: `${file?.file}: ${option.key}` }
}

/**
 * @param {Record<string, string | undefined>} flags flag values as text, by the key of their option
 * @param {NodeJS.ProcessEnv} [env]
 * @param {ConfigFile} [file]
 * @returns {Config}
 * @throws {ConfigError}
 */
function readConfig (flags, env = process.env, file = undefined) {
  rejectUnknownEnv(env)
  const entries = Object.entries(options).map(([name, option]) => {
    const { text, from } = chooseText(option, { given: flags[option.key], env, file })
    try {
      return [name, option.read(text, env)]
    } catch (error) {
      throw new ConfigError(`${from}: ${/** @type {Error} */ (error).message}`)
    }
  })
  return /** @type {Config} */ (Object.fromEntries(entries))
}

/**
 * Variables that the kubelet sets in each container for a Service whose name begins with memwatch:
 * MEMWATCH_SERVICE_HOST, MEMWATCH_PORT=tcp://10.96.0.7:16369 …
 * https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 * @param {string} name
 * @param {string | undefined} value
 */
const isServiceLink = (name, value = '') =>
  /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name) ||
  (name.endsWith('_PORT') && /^\w+:\/\//.test(value))

/**
 * Rejects unknown variables: a misspelt variable must not silently result in the default.
 * @param {NodeJS.ProcessEnv} env
 * @throws {ConfigError}
 */
function rejectUnknownEnv (env) {
  const known = [
    ...Object.values(options),
    ...Object.values(agentOptions),
    ...Object.values(clientOptions),
    annotation
  ].map(({ env }) => env)
  for (const name of Object.keys(env)) {
    if (!name.startsWith('MEMWATCH_') || known.includes(name) || isServiceLink(name, env[name])) {
      continue
    }
    const nearest = closest(name, known)
    const hint =
      distance(name, nearest) <= 4
        ? `; did you mean ${nearest}?`
        : `; known are ${[...new Set(known)].join(', ')}`
    throw new ConfigError(`${name}: no such option${hint}`)
  }
}

module.exports = {
  DEFAULT_PORT, options, clientOptions, chooseText, readConfig, ConfigError
}
