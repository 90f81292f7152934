'use strict'

/**
 * Key of the container whose processes share one pid namespace. Containers of a pod share its host
 * name, so their own names are part of the key.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 */
const containerOf = ({ host, pod }) => [host, pod?.uid, pod?.container].filter(Boolean).join('/')

/**
 * Key of a process. Every container numbers its processes from 1, and pids are reused: a pid is
 * unique only together with its container and its start time in the kernel.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 */
const processOf = hello => `${containerOf(hello)}:${hello.pid}:${hello.startTimeTicks ?? ''}`

/**
 * Key of one isolate from its start to its end.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 */
const identityOf = hello => `${processOf(hello)}:${hello.threadId}:${hello.startedAtUnixMs}`

module.exports = { containerOf, identityOf, processOf }
