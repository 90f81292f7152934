'use strict'

/**
 * Container whose processes are numbered together. The containers of a pod share its host name:
 * their own names tell them apart.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 */
const containerOf = ({ host, pod }) => [host, pod?.uid, pod?.container].filter(Boolean).join('/')

/**
 * Containers number their processes alike, and a pid is used again: it names a process only
 * together with its container and the start that the kernel counts.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 */
const processOf = hello => `${containerOf(hello)}:${hello.pid}:${hello.startTimeTicks ?? ''}`

/** One life of one isolate. @param {import('@memwatch/agent/protocol/frame').Hello} hello */
const identityOf = hello => `${processOf(hello)}:${hello.threadId}:${hello.startedAtUnixMs}`

module.exports = { containerOf, identityOf, processOf }
