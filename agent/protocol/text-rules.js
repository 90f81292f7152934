'use strict'

/** Rules for texts on the wire: agents send, and exporters accept, only texts that satisfy them. */

/**
 * Control characters (C0, DEL, C1), line and paragraph separators, bidirectional controls and lone
 * surrogates. They forge lines, colours and reading order in terminals, logs and pages; UTF-8 has
 * no form for lone surrogates.
 */
// eslint-disable-next-line no-control-regex
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/u
const EACH_UNSAFE = new RegExp(UNSAFE.source, 'gu')

/**
 * @param {string} text
 * @returns {boolean} false: it contains an unsafe character
 */
const isPlainText = text => !UNSAFE.test(text)

/**
 * @param {string} text
 * @param {number} [mostLength] in UTF-16 code units
 * @returns {string} start of the text, with U+FFFD for each unsafe character
 */
const plainText = (text, mostLength = Infinity) =>
  text.slice(0, mostLength).replace(EACH_UNSAFE, '\ufffd')

/** Label and subdomain of Kubernetes: RFC 1123 in lower case. */
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/

/** Names of a pod, by their field in the hello. @satisfies {Record<string, RegExp>} */
const POD_NAMES = Object.freeze({ uid: LABEL, name: SUBDOMAIN, namespace: LABEL, container: LABEL })

/** Host name by RFC 1123, with underscores, as many machines have them. */
const HOST_NAME = /^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$/

/** Version of an app: SemVer, tag or commit. */
const APP_VERSION = /^\w[\w.+-]{0,63}$/

/** Key of a map in a frame: heap space, resource type or addon. */
const KEY = /^(?!__)[A-Za-z0-9_./:-]{1,64}$/

module.exports = { isPlainText, plainText, POD_NAMES, APP_VERSION, HOST_NAME, KEY }
