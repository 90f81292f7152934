'use strict'

const { rankHeadline } = require('@memwatch/engine/verdicts/headline')
const { text } = require('@memwatch/engine/text/json-schema')
const { argumentsOf, findTarget, ofTarget } = require('./define-tool')

/** @typedef {import('./define-tool').Tool} Tool */

const MOST_TARGETS = 25

/** @type {Tool} */
const targets = {
  name: 'targets',
  title: 'Watched processes, worst first',
  description:
    'Lists the watched isolates of Node.js processes, worst first, each with its finding in one ' +
    'sentence. Start here, then call verdicts for a target.',
  input: argumentsOf({
    name: { ...text, description: 'only targets whose name contains this text' },
    skip: {
      type: 'integer',
      minimum: 0,
      description: 'number of targets to skip, to see the next ones; new findings change the order'
    }
  }),
  most: { targets: MOST_TARGETS },
  async answer ({ name = '', skip = 0 }, { list }) {
    const [watched, diagnoses] = await Promise.all([list('targets'), list('diagnoses')])
    const key = (/** @type {any} */ { target, thread, pid }) => JSON.stringify([target, thread, pid])
    const judged = new Map(diagnoses.map(item => [key(item), item.headline]))
    const all = watched
      .filter(({ target }) => target.includes(name))
      .map(item => ({ ...item, headline: judged.get(key(item)) }))
      .sort((a, b) => rankHeadline(a) - rankHeadline(b))
    return {
      count: all.length,
      targets: all.slice(skip).map(summarizeTarget),
      // Only an exporter may have none: a recording has its targets to the end.
      ...watched.length === 0 && { note: 'No process is watched. deaths lists the ended ones.' }
    }
  }
}

/** @param {any} item of /api/v1/targets, with its headline */
function summarizeTarget (item) {
  const { target, thread, pid, node, up, silence, uptimeSeconds, pod, memory, values } = item
  const { state = 'undecided', diagnosis = null, severity = null, text = null } = item.headline ?? {}
  return {
    target,
    thread,
    pid,
    node,
    state,
    ...diagnosis && { diagnosis, severity },
    headline: text?.slice(0, MOST_HEADLINE),
    rssBytes: memory?.rssBytes ?? values?.rssBytes ?? null,
    uptimeSeconds: Math.round(uptimeSeconds),
    up,
    ...silence && { silence },
    ...pod && { pod: pod.name, namespace: pod.namespace }
  }
}

/** Upper bound of characters of a headline in a list. */
const MOST_HEADLINE = 300

/** @type {Tool} */
const memory = {
  name: 'memory',
  title: 'RSS breakdown of a process',
  description:
    'Divides the RSS of a process into parts: V8 heap live, garbage and free, Buffers, malloc in ' +
    'use and retained, code, stacks. The parts add up to RSS, in bytes.',
  input: argumentsOf(ofTarget, ['target']),
  async answer (args, facts) {
    const { target, thread, pid, memory } = await findTarget(facts, args)
    if (memory === null) {
      return { target, thread, pid, note: 'Only the main thread has the parts of RSS.' }
    }
    const { parts, ...rest } = memory
    return {
      target,
      thread,
      pid,
      ...rest,
      parts: parts.filter((/** @type {any} */ { bytes }) => bytes > 0)
        .sort((/** @type {any} */ a, /** @type {any} */ b) => b.bytes - a.bytes)
    }
  }
}

module.exports = { targets, memory }
