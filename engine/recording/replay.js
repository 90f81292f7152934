'use strict'

const { MAX_LINE_BYTES } = require('@memwatch/agent/protocol/frame')
const { LineSplitter } = require('../decode/lines')
const { check } = require('../decode/decode')
const { Targets } = require('../history/targets')
const { evaluate } = require('../verdicts/evaluate')
const { plainText } = require('@memwatch/agent/protocol/text-rules')
const { RECORDING_VERSION, isHeader, rebuildCommand, rebuildEnd } = require('./format')

/** The envelope of a wire line in a recording. */
const ENVELOPE_BYTES = 64
/** Targets in one recording: a year of restarts, not an attack. */
const MAX_TARGETS = 100_000

/** A recorder that is killed damages one line; what is damaged throughout is no recording. */
const MAX_REJECTED = 100_000

/**
 * A file that is no recording, or none that this version can read. Its message says which and why.
 */
class RecordingError extends Error {}

/**
 * @typedef {object} Input a recording that is open
 * @property {string} name
 * @property {() => AsyncIterable<Buffer>} bytes all of it, unpacked; once
 * @property {boolean} cut whether its end is missing; known once all bytes are read
 *
 * @typedef {object} Replayed
 * @property {import('./format').Header} header
 * @property {import('./format').End} [end]
 * @property {import('../history/target').Target[]} targets all that were watched, in the order they
 *   ended; then those that did not
 * @property {number} frames taken
 * @property {number} rejected lines that were not taken, as a live exporter would not have
 * @property {boolean} cut whether the file breaks off: a recorder that was killed
 */

/** @returns {Replayed} */
const nothingReplayed = () => ({
  header: { memwatch: 'recording', version: 0 },
  targets: [],
  frames: 0,
  rejected: 0,
  cut: false
})

/**
 * What one agent said, to the session that said it.
 * @param {{ session: number, line: unknown }} item of the recording
 * @param {object} into
 * @param {Targets} into.targets
 * @param {Map<number, import('@memwatch/exporter/ingest/listener').Session>} into.sessions
 * @param {{ nowUnixMs: number }} into.clock goes with the messages
 * @returns {boolean} false for a line that a live exporter would not have taken
 */
function takeLine ({ session: id, line }, { targets, sessions, clock }) {
  const checked = check(line)
  if (!checked.ok) return false
  const { message } = checked
  if (message.type === 'hello') {
    const opened = targets.open(message)
    if (typeof opened === 'string') return false
    sessions.set(id, opened)
    return true
  }
  // said to a command of that time
  if (message.type === 'answer' || message.type === 'capture') return true
  clock.nowUnixMs = Math.max(clock.nowUnixMs, message.atUnixMs)
  const session = sessions.get(id)
  if (!session) return false
  if (message.type === 'frame') return session.frame(message) === undefined
  session.bye(message)
  return true
}

/**
 * Judge a recording: the frames go through the code that judged them live, in the order they came.
 * Time is that of the frames, so the verdicts are the same and nothing is waited for.
 *
 * @param {Input} input
 * @param {{ onVerdict?: (target: import('../history/target').Target, verdict:
 *   import('../verdicts/evaluate').Verdict) => void, onFrame?: (target:
 *   import('../history/target').Target) => void, onError?: (error: Error) => void }} [options]
 *   onFrame: after each frame that was taken
 * @returns {Promise<Replayed>}
 * @throws {RecordingError} where it is no recording
 */
async function replay (
  input,
  { onVerdict = () => {}, onFrame = () => {}, onError = () => {} } = {}
) {
  const file = input.name
  const result = nothingReplayed()
  const clock = { nowUnixMs: 0 }
  const targets = new Targets({ maxTargets: MAX_TARGETS, now: () => clock.nowUnixMs })
  targets.on('end', target => {
    if (target.frame) result.targets.push(target)
  })
  targets.on('frame', target => {
    result.frames++
    onFrame(target)
    for (const verdict of evaluate(target, { onError })) onVerdict(target, verdict)
  })
  /** @type {Map<number, import('../history/targets').Session>} */
  const sessions = new Map()
  let number = 0

  /** @param {string} text */
  const take = text => {
    number++
    const item = parse(text)
    if (number === 1) {
      result.header = checkHeader(item, file)
    } else if (item?.line !== undefined) {
      if (!takeLine(item, { targets, sessions, clock })) result.rejected++
    } else if (item?.closed) {
      sessions.get(item.session)?.closed(false)
      sessions.delete(item.session)
    } else if (item?.end) {
      result.end = rebuildEnd(item.end)
      if (!result.end) result.rejected++
    } else {
      result.rejected++
    }
  }

  const lines = new LineSplitter({ maxBytes: MAX_LINE_BYTES + ENVELOPE_BYTES })
  for await (const chunk of input.bytes()) {
    if (result.rejected > MAX_REJECTED) {
      throw new RecordingError(
        `${file} is damaged: more than ${MAX_REJECTED} of its lines are none of a recording`
      )
    }
    lines.push(chunk, line => { take(line) }, () => { result.rejected++ })
  }
  result.cut = input.cut
  if (number === 0) {
    throw new RecordingError(
      `${file} holds no recording: ${lines.pendingBytes > 0 ? 'not one whole line' : 'it is empty'}`
    )
  }
  if (lines.pendingBytes > 0) result.cut = true
  result.targets.push(...targets.all.filter(({ frame }) => frame))
  return result
}

/**
 * @param {string} text
 * @returns {any}
 */
function parse (text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * @param {unknown} item
 * @param {string} file
 * @returns {import('./format').Header}
 */
function checkHeader (item, file) {
  if (!isHeader(item)) {
    throw new RecordingError(
      `${file} is not a recording of memwatch: its first line says nothing of it`
    )
  }
  const { version, command } = item
  if (version !== RECORDING_VERSION) {
    throw new RecordingError(
      `${file} is a recording of version ${plainText(String(version)).slice(0, 40)}; this ` +
        `memwatch reads version ${RECORDING_VERSION}`
    )
  }
  return { memwatch: 'recording', version: RECORDING_VERSION, ...rebuildCommand(command) }
}

module.exports = { replay, RecordingError }
