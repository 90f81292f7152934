'use strict'

/**
 * The shape of a source: existing data of a process without an agent. A source is a reader that
 * converts its data into the frames that an agent would have sent, as far as possible. The same
 * code evaluates these frames and an agent's frames. Missing values are absent, so that a diagnosis
 * that needs them answers unknown. Each source is one file in this folder, listed in index.js.
 *
 * @typedef {keyof typeof import('@memwatch/agent/protocol/frame').fields} FieldName
 * @typedef {string} DiagnosisId
 *
 * @typedef {object} Input one file, or stdin
 * @property {string} name name as given; `-` is stdin
 * @property {string} head first characters, unpacked
 * @property {() => AsyncIterable<Buffer>} bytes yields the whole unpacked content; to be called
 *   once
 *
 * @typedef {object} Given facts about the process that the caller knows and the source lacks
 * @property {string[]} [nodeOptions] flags of the process
 * @property {number} [containerLimitBytes]
 * @property {string} [nodeVersion]
 *
 * @typedef {object} Source
 * @property {string} id kebab-case
 * @property {string} title with its article, such as: a --trace-gc log
 * @property {string} accepted description of the recognised input, for the error about other input
 * @property {readonly FieldName[]} fields fields of a frame that the source provides
 * @property {Readonly<Record<DiagnosisId, string>>} [unsure] diagnoses that the source allows to
 *   suspect but not to confirm, with the reason; the key * means all
 * @property {Readonly<Record<DiagnosisId, string>>} [cannotExclude] diagnoses that the source
 *   allows to find but not to rule out, with the reason
 * @property {boolean} [tellsMachine] true if the source reports the memory of the machine
 * @property {string} lacks text that names the facts that the source lacks
 * @property {(given: Given) => string | undefined} [bounds] unknown values, judged at both bounds:
 *   bounded.js
 * @property {(head: string) => boolean} accepts
 * @property {(inputs: Input[], lives: import('./lives').Lives, given: Given) => Promise<void>} read
 */

/** Error for unknown or damaged input. Its message names the file and the problem. */
class SourceError extends Error {}

/**
 * @param {Source} source
 * @returns {Readonly<Source>}
 */
const defineSource = source => Object.freeze(source)

module.exports = { defineSource, SourceError }
