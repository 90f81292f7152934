'use strict'

const { plainText } = require('@memwatch/agent/protocol/text-rules')
const { SourceError } = require('./define-source')
const { openInput } = require('./open-input')
const { Lives } = require('./lives')
const { cannotTell } = require('./support')
const { traceGc } = require('./trace-gc')
const { gcProfiler } = require('./gc-profiler')
const { report } = require('./report')

/**
 * Kinds of files besides recordings of memwatch.
 * @type {readonly import('./define-source').Source[]}
 */
const fileSources = Object.freeze([traceGc, gcProfiler, report])

/** True for the beginning of a recording. @param {string} head */
const isRecording = head => /^\s*\{\s*"memwatch"\s*:\s*"recording"/.test(head)

/**
 * @param {string} head
 * @returns {'recording' | import('./define-source').Source | undefined}
 */
const recognise = head =>
  isRecording(head) ? 'recording' : fileSources.find(({ accepts }) => accepts(head))

const ACCEPTED = ['a recording of memwatch', ...fileSources.map(({ accepted }) => accepted)].join(
  '; '
)

/**
 * Opens files and detects their kind by their content.
 * @param {string[]} names
 * @param {(name: string, share: number) => void} [onProgress]
 * @returns {Promise<{ kind: 'recording' | import('./define-source').Source, inputs:
 *   import('./open-input').Opened[] }>} all of one kind
 * @throws {SourceError}
 */
async function openAll (names, onProgress = () => {}) {
  const inputs = []
  /** @type {ReturnType<typeof recognise>} */
  let kind
  for (const name of names) {
    const input = await openInput(name, {
      enough: head => recognise(head) !== undefined,
      onProgress: share => onProgress(name, share)
    })
    const found = recognise(input.head)
    if (!found) {
      throw new SourceError(
        `${name} ${describeOther(input)}. memwatch diagnose reads: ${ACCEPTED}; gzip or plain`
      )
    }
    if (kind && found !== kind) {
      throw new SourceError(
        `expected files of one kind: ${inputs[0].name} is ${titleOf(kind)}, ${name} is ` +
          `${titleOf(found)}; diagnose them separately`
      )
    }
    kind = found
    inputs.push(input)
  }
  if (!kind) throw new SourceError('expected a file, got none')
  return { kind, inputs }
}

/** @param {'recording' | import('./define-source').Source} kind */
const titleOf = kind => kind === 'recording' ? 'a recording of memwatch' : kind.title

/** @param {import('./open-input').Opened} input */
function describeOther ({ head, cut }) {
  if (head.trim() === '') return cut ? 'is cut off before the end of its first line' : 'is empty'
  if (head.includes('\0')) return 'is binary'
  return 'is of an unknown type'
}

/**
 * Evaluates the frames of a source.
 * @param {import('./define-source').Source} source
 * @param {import('./define-source').Input[]} inputs
 * @param {import('./define-source').Given} given
 * @param {ConstructorParameters<typeof Lives>[2]} [options]
 * @returns {Promise<{ targets: import('@memwatch/engine/history/target').Target[], ended:
 *   Set<import('@memwatch/engine/history/target').Target>, told: Told }>} ended: targets whose
 *   process has ended, according to the source
 * @throws {SourceError}
 */
async function judgeSource (source, inputs, given, options) {
  const lives = new Lives(source, given, options)
  await source.read(inputs, lives, given)
  for (const refusal of lives.refusals) lives.notes.add(refusal)
  return { targets: lives.all, ended: lives.ended, told: toldBy(source, given, lives.notes) }
}

/**
 * Notes of a report on its source.
 * @typedef {object} Told
 * @property {string} kind
 * @property {string} title
 * @property {string} lacks facts that the source lacks
 * @property {{ diagnosis: string, text: string }[]} cannotTell
 * @property {{ diagnosis: string | null, text: string }[]} limited reasons why the source
 *   gives less certainty; diagnosis: null if the reason applies to all diagnoses
 * @property {string[]} notes on the source: damaged lines, deaths of processes
 */

/**
 * @param {import('./define-source').Source} source
 * @param {import('./define-source').Given} given
 * @param {Iterable<string>} notes
 * @returns {Told}
 */
function toldBy (source, given, notes) {
  const open = source.bounds?.(given)
  const limited = Object.entries({ ...source.unsure }).map(([id, why]) => ({
    diagnosis: id === '*' ? null : id,
    text: `suspected at most: ${why}`
  }))
  return {
    kind: source.id,
    title: source.title,
    lacks: source.lacks,
    cannotTell: [...cannotTell(source, given)].map(([diagnosis, text]) => ({ diagnosis, text })),
    limited: [
      ...limited,
      ...Object.entries({ ...source.cannotExclude }).map(([diagnosis, why]) => ({
        diagnosis,
        text: `possible finding, never ruled out: ${why}`
      })),
      ...(open ? [{ diagnosis: null, text: open }] : [])
    ],
    notes: [...notes].map(text => plainText(text))
  }
}

module.exports = { fileSources, openAll, judgeSource, toldBy, SourceError }
