'use strict'

const { MAX_LINE_BYTES } = require('@memwatch/agent/protocol/frame')
const { LineSplitter } = require('../decode/lines')
const { check } = require('../decode/decode')
const { Targets } = require('../history/targets')
const { evaluate } = require('../verdicts/evaluate')
const { plainText } = require('@memwatch/agent/protocol/text-rules')
const { RECORDING_VERSION, isHeader, rebuildCommand, rebuildEnd } = require('./format')

/** Upper bound of the bytes that a recording adds to a wire line. */
const ENVELOPE_BYTES = 64
/** Upper bound of targets in a recording: enough for a year of restarts, too few for an attack. */
const MAX_TARGETS = 100_000

/**
 * Number of rejected lines above which a file is not a recording. A killed recorder damages only
 * one line.
 */
const MAX_REJECTED = 100_000

/**
 * Error for a file that is no recording, or has an unknown version. Its message names the reason.
 */
class RecordingError extends Error {}

/**
 * @typedef {object} Input an open recording
 * @property {string} name
 * @property {() => AsyncIterable<Buffer>} bytes yields all unpacked bytes; to be called once
 * @property {boolean} cut true if the end of the file is missing; known once all bytes are read
 *
 * @typedef {object} Replayed
 * @property {import('./format').Header} header
 * @property {import('./format').End} [end]
 * @property {import('../history/target').Target[]} targets all watched targets: first the ended
 *   ones in the order of their ends, then the others
 * @property {number} frames number of accepted frames
 * @property {number} rejected number of lines that a live exporter would also have rejected
 * @property {boolean} cut true if the file breaks off, as after a killed recorder
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
 * Applies one message of an agent to the session that sent it.
 * @param {{ session: number, line: unknown }} item line of the recording
 * @param {object} into
 * @param {Targets} into.targets
 * @param {Map<number, import('@memwatch/exporter/ingest/listener').Session>} into.sessions
 * @param {{ nowUnixMs: number }} into.clock set to the time of each message
 * @returns {boolean} false for a line that a live exporter would reject
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
  // An answer belongs to a command of the recorded exporter, so a replay ignores it.
  if (message.type === 'answer' || message.type === 'capture') return true
  clock.nowUnixMs = Math.max(clock.nowUnixMs, message.atUnixMs)
  const session = sessions.get(id)
  if (!session) return false
  if (message.type === 'frame') return session.frame(message) === undefined
  session.bye(message)
  return true
}

/**
 * Judges a recording with the code that judges live targets, frame by frame. Time comes from the
 * frames, so a replay gives the same verdicts and never waits.
 *
 * @param {Input} input
 * @param {{ onVerdict?: (target: import('../history/target').Target, verdict:
 *   import('../verdicts/evaluate').Verdict) => void, onFrame?: (target:
 *   import('../history/target').Target) => void, onError?: (error: Error) => void }} [options]
 *   onFrame: called after each accepted frame
 * @returns {Promise<Replayed>}
 * @throws {RecordingError} if the input is no recording
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
        `${file} is damaged: more than ${MAX_REJECTED} of its lines are not lines of a recording`
      )
    }
    lines.push(chunk, line => { take(line) }, () => { result.rejected++ })
  }
  result.cut = input.cut
  if (number === 0) {
    throw new RecordingError(
      `${file}: expected a recording, got ${lines.pendingBytes > 0 ? 'no whole line' : 'an empty file'}`
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
      `${file}: expected a recording of memwatch, got a file without its first line`
    )
  }
  const { version, command } = item
  if (version !== RECORDING_VERSION) {
    throw new RecordingError(
      `${file}: expected a recording of version ${RECORDING_VERSION}, got version ` +
        plainText(String(version)).slice(0, 40)
    )
  }
  return { memwatch: 'recording', version: RECORDING_VERSION, ...rebuildCommand(command) }
}

module.exports = { replay, RecordingError }
