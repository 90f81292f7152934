'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { knownBugs } = require('../../engine/known-bugs')

/** Node.js version of cases that name none. */
const DEFAULT_NODE = '24.21.0'
const DEFAULT_LIMIT_MIB = 512
const LEAK_SECONDS = 120
const FIXED_SECONDS = 60
const HEALTHY_SECONDS = 60

/**
 * A variant of a case: its packages, or its Node.js if that leaks.
 * @typedef {object} Form
 * @property {Record<string, string>} packages exact versions by name
 * @property {string} [node]
 * @property {string} [label] text for the table, if packages and Node.js do not suffice
 * @property {Record<string, string>} [env]
 *
 * @typedef {object} Sides
 * @property {boolean} fixed true: run the fixed form
 * @property {number} port port to listen on, and to send traffic to
 * @property {(callsPerSecond: number, work: (n: number) => void) => void} perSecond
 * @property {(bytes: number, n: number) => number[]} payload
 * @property {(port: number, options?: import('node:http').RequestOptions & { body?: string | Buffer
 *   }) => void} request
 *
 * A file of leaks/: a published leak of a package or of Node.js, and an app with it.
 * @typedef {object} Leak
 * @property {string} title default: that of the known bug of the same name
 * @property {string} source the public thread; default: the thread of this known bug
 * @property {Form} leaky
 * @property {Form} fixed
 * @property {string[]} expect correct diagnoses
 * @property {RegExp | null} culprit correct suspect: a function, a file or a package; null if no
 *   JavaScript line is responsible
 * @property {string} load
 * @property {string} [node]
 * @property {number | null} [limitMib] memory limit; null without one
 * @property {number} [seconds]
 * @property {(sides: Sides) => void} app
 * @property {(sides: Sides) => void} [traffic]
 *
 * A file of healthy/: a program without a memory problem.
 * @typedef {object} Healthy
 * @property {string} title
 * @property {Record<string, string>} packages
 * @property {Record<string, string>} [overrides] versions of indirect dependencies
 * @property {string} load
 * @property {string} [node]
 * @property {number | null} [limitMib]
 * @property {number} [seconds]
 * @property {Record<string, string>} [env]
 * @property {(folder: string) => void} [prepare] writes the program's input
 * @property {string[]} [command] arguments of Node.js, relative to the folder; default: run `app`
 * @property {(sides: Sides) => void} [app]
 * @property {(sides: Sides) => void} [traffic]
 *
 * One program to run.
 * @typedef {object} Run
 * @property {string} case
 * @property {'leaky' | 'fixed' | 'healthy'} form
 * @property {string} file
 * @property {Leak | Healthy} of
 * @property {Record<string, string>} packages
 * @property {string} node version
 * @property {string} label
 * @property {Record<string, string>} env
 * @property {number | null} limitMib
 * @property {number} seconds
 * @property {string[]} expect
 * @property {RegExp | null} culprit
 */

/** @param {'leaks' | 'healthy'} kind */
const filesOf = kind => fs.readdirSync(path.join(__dirname, kind))
  .filter(name => name.endsWith('.js'))
  .sort()
  .map(name => ({ name: name.slice(0, -3), file: path.join(__dirname, kind, name) }))

/** @returns {Run[]} each leak leaky and fixed, then the healthy programs */
function allRuns () {
  return [
    ...filesOf('leaks').flatMap(({ name, file }) => runsOfLeak(name, file)),
    ...filesOf('healthy').map(({ name, file }) => runOfHealthy(name, file))
  ]
}

/**
 * @param {string} name
 * @param {string} file
 * @returns {Run[]}
 */
function runsOfLeak (name, file) {
  const bug = knownBugs.find(({ id }) => id === name)
  /** @type {Leak} */
  const leak = { ...bug && { title: bug.title, source: bug.thread }, ...require(file) }
  const forms = /** @type {const} */ (['leaky', 'fixed'])
  return forms.map(form => {
    const { packages, node = leak.node ?? DEFAULT_NODE, label, env = {} } = leak[form]
    return {
      case: name,
      form,
      file,
      of: leak,
      packages,
      node,
      label: label ?? labelOf(packages, node),
      env: { ...env, REALWORLD_FORM: form },
      limitMib: leak.limitMib === undefined ? DEFAULT_LIMIT_MIB : leak.limitMib,
      seconds: form === 'fixed' ? FIXED_SECONDS : leak.seconds ?? LEAK_SECONDS,
      expect: leak.expect,
      culprit: leak.culprit
    }
  })
}

/**
 * @param {string} name
 * @param {string} file
 * @returns {Run}
 */
function runOfHealthy (name, file) {
  /** @type {Healthy} */
  const healthy = require(file)
  const { packages, node = DEFAULT_NODE, env = {}, limitMib = DEFAULT_LIMIT_MIB } = healthy
  return {
    case: name,
    form: 'healthy',
    file,
    of: healthy,
    packages,
    node,
    label: labelOf(packages, node),
    env,
    limitMib,
    seconds: healthy.seconds ?? HEALTHY_SECONDS,
    expect: [],
    culprit: null
  }
}

/**
 * @param {Record<string, string>} packages
 * @param {string} node
 */
function labelOf (packages, node) {
  const [first] = Object.entries(packages)
  return first ? first.join(' ') : `Node.js ${node}`
}

module.exports = { allRuns }
