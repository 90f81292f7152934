'use strict'

const { originOf, ownerOf } = require('./call-frames')
const { cpuSites } = require('./cpu-sites')
const { packageOf } = require('@memwatch/engine/text/code-owner')

/** Functions of Node.js that leave a file or folder open for their caller to close. */
const OPENS = /^open(?:Sync|dir|dirSync)?$/
/** Streams open and close their file themselves, unless nobody reads them to their end. */
const STREAMS = /^(?:create)?(?:Read|Write)Stream$/
const OF_FILES = /^node:(?:fs$|internal\/fs\/)/

/**
 * Finds the functions that open files, and without any those that create streams of files. A file
 * descriptor is a number, so a heap profile shows nobody who keeps one. All opened files count,
 * also those that are closed again.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {string} [agentFolder]
 */
function fileOpens (profile, agentFolder) {
  const opens = callsOf(OPENS, profile, agentFolder)
  return opens.sites.length > 0 ? opens : callsOf(STREAMS, profile, agentFolder)
}

/**
 * @param {RegExp} names
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {string} [agentFolder]
 */
const callsOf = (names, profile, agentFolder) => cpuSites(profile, agentFolder, stack => {
  // The function of Node.js that JavaScript of the app or of a package called.
  const caller = stack.findIndex(({ callFrame }) => isOfUser(callFrame))
  const called = stack[caller - 1]?.callFrame
  if (!called || !names.test(called.functionName) || !OF_FILES.test(called.url)) return null
  const { owner, callees } = ownerOf(stack)
  if (!owner) return null
  const dependency = callees.find(({ callFrame }) => originOf(callFrame) === 'dependency')
  const via = dependency ? packageOf(dependency.callFrame.url) : null
  return { callFrame: owner.callFrame, via, call: called.functionName }
})

/** @param {import('./call-frames').CallFrame} frame */
const isOfUser = frame => ['app', 'dependency'].includes(originOf(frame))

module.exports = { fileOpens }
