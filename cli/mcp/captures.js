'use strict'

const { setTimeout: wait } = require('node:timers/promises')
const { kinds } = require('@memwatch/exporter/captures/kinds')
const { text } = require('@memwatch/engine/text/json-schema')
const { pathSegment } = require('../text/path-segment')
const { ToolError, accept, argumentsOf, findTarget, ofTarget, queryOf } = require('./define-tool')
const { describeSite } = require('./verdicts')

/** @typedef {import('./define-tool').Tool} Tool */

const MOST_CAPTURES = 30
const POLL_MS = 250
/** Longest wait for a capture: by default clients abandon a call after a minute. */
const MOST_WAIT_MS = 45_000

const captureId = { ...text, description: 'id of a capture, as captures lists it' }

/** @type {Tool} */
const captures = {
  name: 'captures',
  title: 'Existing profiles and snapshots',
  description:
    'Lists captures, newest first: automatic captures, which memwatch makes for a finding, and ' +
    'requested ones. suspects and retainers accept the id of a capture.',
  input: argumentsOf({ target: { ...text, description: 'only captures of this target' } }),
  needs: 'exporter',
  async answer ({ target }, { call }) {
    const body = accept(
      await call(`captures?${queryOf({ limit: MOST_CAPTURES, target })}`), 'call targets'
    )
    return { captures: body.map(summarizeCapture) }
  }
}

/** @param {any} capture capture, in the form of the API */
function summarizeCapture (capture) {
  const { id, kind, target, thread, pid, state, error, diagnosis, requestedUnixMs } = capture
  const { seconds, suspects, retainers } = capture
  return {
    id,
    kind,
    target,
    thread,
    pid,
    state,
    ...error && { error },
    madeFor: diagnosis ?? 'a request',
    at: new Date(requestedUnixMs).toISOString(),
    seconds,
    firstSuspect: suspects?.sites[0]?.text ?? retainers?.piles[0]?.text ?? null
  }
}

/** @type {Tool} */
const suspects = {
  name: 'suspects',
  title: 'Lines of code that a capture names',
  description:
    'The lines of code that a capture names, worst first, with file, line, package and share, ' +
    'and the shares of packages. For a target without a capture id, the tool uses its newest ' +
    'finished capture.',
  input: argumentsOf({ ...ofTarget, capture: captureId }),
  needs: 'exporter',
  most: { sites: 15, packages: 10, piles: 10, through: 5 },
  answer: async (args, facts) => describeCapture(await findCapture(args, facts))
}

/** @param {any} capture capture, in the form of the API */
function describeCapture (capture) {
  const { suspects, retainers } = capture
  return {
    ...summarizeCapture(capture),
    suspects: suspects && {
      of: suspects.of,
      total: suspects.total,
      sites: suspects.sites.map((/** @type {any} */ site) => {
        const { value, inlinedIn, via, through, call, instead, longestSeconds } = site
        return {
          ...describeSite(site),
          value,
          ...inlinedIn && { inlinedIn },
          ...via && { via },
          ...through?.length > 0 && { through },
          ...call && { call, instead, longestSeconds }
        }
      }),
      packages: suspects.packages
    },
    piles: retainers?.piles.map((/** @type {any} */ { text }) => text)
  }
}

/**
 * Finds the capture with an id. Without an id it is the target's newest capture with suspects or
 * holders, or its newest capture.
 * @param {{ target?: string, thread?: string, capture?: string }} args
 * @param {import('./define-tool').Facts} facts
 * @throws {ToolError}
 */
async function findCapture ({ capture: id, target, thread }, facts) {
  const next = 'call captures to get the ids'
  if (id !== undefined) return accept(await facts.call(`captures/${pathSegment(id)}`), next)
  if (target === undefined) throw new ToolError('expected a capture or a target, got neither', next)
  const query = queryOf({ limit: MOST_CAPTURES, target })
  const done = accept(await facts.call(`captures?${query}`), 'call targets')
    .filter((/** @type {any} */ { state, suspects, retainers, thread: of }) =>
      state === 'done' && (suspects || retainers) && (thread === undefined || of === thread))
  if (done.length > 0) return done.find(pointsAtSomething) ?? done[0]
  await findTarget(facts, { target, thread })
  throw new ToolError(
    'this target has no such capture',
    'memwatch makes one by itself when it suspects a problem that lines of code cause; a person ' +
      'can make one with memwatch capture'
  )
}

/** @param {any} capture capture, in the form of the API */
const pointsAtSomething = ({ suspects, retainers }) =>
  suspects?.sites.length > 0 || retainers?.piles.length > 0

/**
 * Kinds of captures that an assistant may request. Heap snapshots are excluded: they stop the app
 * and contain its secrets, so a person has to decide.
 */
const takenKinds = Object.keys(kinds).filter(kind => kind !== 'heap_snapshot')

/** @type {Tool} */
const capture = {
  name: 'capture',
  title: 'Profile a running app',
  description:
    'Takes a capture of a running app, and answers with its suspects. ' +
    takenKinds.map(kind => `${kind}: ${kinds[/** @type {keyof typeof kinds} */ (kind)].title}`).join('; ') +
    '. A capture that takes longer than 45 s continues: call suspects with its id later.',
  input: argumentsOf({
    ...ofTarget,
    kind: { enum: takenKinds },
    seconds: { type: 'number', minimum: 0.1, maximum: 300 }
  }, ['target', 'kind']),
  needs: 'captures',
  most: suspects.most,
  async answer (args, facts, signal) {
    const { target, thread } = await findTarget(facts, args)
    const query = queryOf({ kind: args.kind, thread, seconds: args.seconds })
    let found = accept(
      await facts.call(`targets/${pathSegment(target)}/captures?${query}`, 'POST'),
      'call captures: another capture may be running; then repeat'
    )
    const until = performance.now() + MOST_WAIT_MS
    while (found.state === 'running' && performance.now() < until) {
      await wait(POLL_MS, undefined, { signal })
      found = accept(await facts.call(`captures/${pathSegment(found.id)}`), 'call captures')
    }
    return {
      ...describeCapture(found),
      ...found.state === 'running' && {
        next: 'the capture continues: call suspects with this id ' +
        'later'
      }
    }
  }
}

/** @type {Tool} */
const retainers = {
  name: 'retainers',
  title: 'Objects that pile up in a heap snapshot, and their holders',
  description:
    'Names the piles of similar objects in a heap snapshot, the holder of each pile, and the ' +
    'path from the root to it. The snapshot is a capture of an exporter, or a .heapsnapshot file ' +
    'on this machine. With an earlier file of the same process, only newer objects count.',
  input: argumentsOf({
    capture: captureId,
    file: { ...text, description: 'path of a .heapsnapshot file, gzip or plain' },
    earlier: { ...text, description: 'path of an earlier snapshot of the same process' }
  }),
  most: { piles: 10, path: 30, packages: 10 },
  async answer (args, facts, signal) {
    if ((args.capture === undefined) === (args.file === undefined)) {
      throw new ToolError('expected either capture or file', 'repeat with one of them')
    }
    const found = args.file === undefined
      ? (await findCapture(args, facts)).retainers
      : await facts.readSnapshot(args.file, args.earlier, signal)
    if (!found) {
      throw new ToolError('this capture is no heap snapshot', 'call suspects for its lines of code')
    }
    if (found.refused) {
      throw new ToolError(
        `not analysed: ${found.refused}`, 'name another snapshot, or allow more memory with ' +
          'memwatch retainers --memory'
      )
    }
    return found
  }
}

module.exports = { capture, captures, retainers, suspects }
