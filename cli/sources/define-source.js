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
 * @property {string} name as it was given; - is stdin
 * @property {string} head its first characters, unpacked
 * @property {() => AsyncIterable<Buffer>} bytes all of it, unpacked; once
 *
 * @typedef {object} Given what the caller knows of the process and the material does not say
 * @property {string[]} [nodeOptions] flags that it ran with
 * @property {number} [containerLimitBytes]
 * @property {string} [nodeVersion]
 *
 * @typedef {object} Source
 * @property {string} id kebab-case
 * @property {string} title with its article: a --trace-gc log
 * @property {string} accepted what is recognised, for who gave something else
 * @property {readonly FieldName[]} fields the fields of a frame that it has
 * @property {Readonly<Record<DiagnosisId, string>>} [unsure] what it can suspect and never confirm,
 *   and why; the key * is all of them
 * @property {Readonly<Record<DiagnosisId, string>>} [cannotExclude] what it can find and never rule
 *   out, and why
 * @property {boolean} [tellsMachine] how much memory the machine has
 * @property {string} lacks what it says nothing of, in words
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
