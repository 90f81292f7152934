'use strict'

/**
 * The rules for texts on the wire: the agent sends no text that breaks them, the exporter accepts
 * none.
 */

/**
 * Control characters (C0, DEL, C1), line and paragraph separators, bidirectional controls, lone
 * surrogates. They forge lines, colours and reading order in terminals, logs and pages, and lone
 * surrogates have no form in UTF-8.
 */
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/u
const EACH_UNSAFE = new RegExp(UNSAFE.source, 'gu')

/**
 * @param {string} text
 * @returns {boolean} whether it holds none of the characters above
 */
const isPlainText = text => !UNSAFE.test(text)

/**
 * @param {string} text
 * @param {number} [mostLength] in UTF-16 code units
 * @returns {string} its beginning, with U+FFFD in place of each unsafe character
 */
const plainText = (text, mostLength = Infinity) =>
  text.slice(0, mostLength).replace(EACH_UNSAFE, '\ufffd')

/** A label and a subdomain as Kubernetes reads RFC 1123: lower case. */
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/

/** The names of a pod, by their field in the hello. @satisfies {Record<string, RegExp>} */
const POD_NAMES = Object.freeze({ uid: LABEL, name: SUBDOMAIN, namespace: LABEL, container: LABEL })

/** A host name by RFC 1123, and with underscores: many machines have such a name. */
const HOST_NAME = /^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$/

/** A key of a map in a frame: a heap space, a resource type, an addon. */
const KEY = /^(?!__)[A-Za-z0-9_./:-]{1,64}$/

module.exports = { isPlainText, plainText, POD_NAMES, HOST_NAME, KEY }
