'use strict'

/**
 * The shape of a source: what people already have of a process that no agent watched. A source is a
 * reader that turns its material into the frames an agent would have sent, as far as it goes; they
 * are judged by the very code that judges an agent's. What it does not say is absent, so that a
 * diagnosis which needs it answers unknown. One file each, in this folder, listed in index.js.
 *
 * @typedef {keyof typeof import('@memwatch/agent/protocol/frame').fields} FieldName
 * @typedef {string} DiagnosisId
 *
 * @typedef {object} Input one file, or stdin
 * @property {string} name as given; - is stdin
 * @property {string} head its first characters, unpacked
 * @property {() => AsyncIterable<Buffer>} bytes all of it, unpacked; once
 *
 * @typedef {object} Given facts about the process that the caller knows and the source lacks
 * @property {string[]} [nodeOptions] flags of the process
 * @property {number} [containerLimitBytes]
 * @property {string} [nodeVersion]
 *
 * @typedef {object} Source
 * @property {string} id kebab-case
 * @property {string} title with its article: a --trace-gc log
 * @property {string} accepted recognised input, for the error about other input
 * @property {readonly FieldName[]} fields of a frame that it provides
 * @property {Readonly<Record<DiagnosisId, string>>} [unsure] what it can suspect and never confirm,
 *   and why; the key * is all of them
 * @property {Readonly<Record<DiagnosisId, string>>} [cannotExclude] what it can find and never rule
 *   out, and why
 * @property {boolean} [tellsMachine] it reports the memory of the machine
 * @property {string} lacks facts that it lacks, in words
 * @property {(given: Given) => string | undefined} [bounds] what it leaves open, and is judged at
 *   both ends: bounded.js
 * @property {(head: string) => boolean} accepts
 * @property {(inputs: Input[], lives: import('./lives').Lives, given: Given) => Promise<void>} read
 */

/**
 * Material that is none that memwatch reads, or is damaged. Its message names the file, and what is
 * wrong.
 */
class SourceError extends Error {}

/**
 * @param {Source} source
 * @returns {Readonly<Source>}
 */
const defineSource = source => Object.freeze(source)

module.exports = { defineSource, SourceError }
