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
/** Clients give up on a call after a minute, where nothing else is set. */
const MOST_WAIT_MS = 45_000

const captureId = { ...text, description: 'id of a capture, as captures lists it' }

/** @type {Tool} */
const captures = {
  name: 'captures',
  title: 'Profiles and snapshots that were taken',
  description:
    'Lists captures, newest first: those that memwatch took by itself when it found something, and ' +
    'those that somebody asked for. suspects and retainers tell of one by its id.',
  input: argumentsOf({ target: { ...text, description: 'only those of this target' } }),
  needs: 'exporter',
  async answer ({ target }, { call }) {
    const body = accept(
      await call(`captures?${queryOf({ limit: MOST_CAPTURES, target })}`), 'call targets'
    )
    return { captures: body.map(summarizeCapture) }
  }
}

/** @param {any} capture of the API */
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
  title: 'Lines of code that a capture points at',
  description:
    'The lines of code that a capture points at, worst first, with file, line, package and share, ' +
    'and the same by package. Of a target without a capture id: its newest finished capture.',
  input: argumentsOf({ ...ofTarget, capture: captureId }),
  needs: 'exporter',
  most: { sites: 15, packages: 10, piles: 10, through: 5 },
  answer: async (args, facts) => describeCapture(await findCapture(args, facts))
}

/** @param {any} capture of the API */
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
 * The capture of an id, else the newest of a target that points at something, else its newest.
 * @param {{ target?: string, thread?: string, capture?: string }} args
 * @param {import('./define-tool').Facts} facts
 * @throws {ToolError}
 */
async function findCapture ({ capture: id, target, thread }, facts) {
  const next = 'call captures for the ids'
  if (id !== undefined) return accept(await facts.call(`captures/${pathSegment(id)}`), next)
  if (target === undefined) throw new ToolError('neither a capture nor a target is named', next)
  const query = queryOf({ limit: MOST_CAPTURES, target })
  const done = accept(await facts.call(`captures?${query}`), 'call targets')
    .filter((/** @type {any} */ { state, suspects, retainers, thread: of }) =>
      state === 'done' && (suspects || retainers) && (thread === undefined || of === thread))
  if (done.length > 0) return done.find(pointsAtSomething) ?? done[0]
  await findTarget(facts, { target, thread })
  throw new ToolError(
    'this target has no such capture',
    'memwatch takes one by itself when it finds a problem that has lines of code; or a person takes ' +
      'one with memwatch capture'
  )
}

/** @param {any} capture of the API */
const pointsAtSomething = ({ suspects, retainers }) =>
  suspects?.sites.length > 0 || retainers?.piles.length > 0

/** A heap snapshot stops the app, holds its secrets, and is for a person to decide. */
const takenKinds = Object.keys(kinds).filter(kind => kind !== 'heap_snapshot')

/** @type {Tool} */
const capture = {
  name: 'capture',
  title: 'Profile a running app',
  description:
    'Takes a capture of a running app, and answers with its suspects. ' +
    takenKinds.map(kind => `${kind}: ${kinds[/** @type {keyof typeof kinds} */ (kind)].title}`).join('; ') +
    '. One that takes longer than 45 s goes on: ask suspects for it by its id.',
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
      'call captures: one may be running; then repeat'
    )
    const until = performance.now() + MOST_WAIT_MS
    while (found.state === 'running' && performance.now() < until) {
      await wait(POLL_MS, undefined, { signal })
      found = accept(await facts.call(`captures/${pathSegment(found.id)}`), 'call captures')
    }
    return {
      ...describeCapture(found),
      ...found.state === 'running' && { next: 'it goes on: call suspects with this id later' }
    }
  }
}

/** @type {Tool} */
const retainers = {
  name: 'retainers',
  title: 'Objects that pile up in a heap snapshot, and their holders',
  description:
    'Names the piles of alike objects in a heap snapshot, what keeps each alive, and the path from ' +
    'the root to it. The snapshot is a capture of an exporter, or a .heapsnapshot file on this ' +
    'machine. With an earlier file of the same process only objects count that came since.',
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
        `not analysed: ${found.refused}`, 'name another snapshot; memwatch retainers --memory allows more'
      )
    }
    return found
  }
}

module.exports = { capture, captures, retainers, suspects }
