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
 * Finds the functions that open files, and after them those that create streams of files. A file
 * descriptor is a number, so a heap profile shows nobody who keeps one. All opened files count,
 * also those that are closed again.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {string} [agentFolder]
 */
function fileOpens (profile, agentFolder) {
  const found = cpuSites(profile, agentFolder, stack => {
    // The function of Node.js that JavaScript of the app or of a package called.
    const caller = stack.findIndex(({ callFrame }) => isOfUser(callFrame))
    const called = stack[caller - 1]?.callFrame
    const isOpen = called && OF_FILES.test(called.url) &&
      (OPENS.test(called.functionName) || STREAMS.test(called.functionName))
    const { owner, callees } = ownerOf(stack)
    if (!isOpen || !owner) return null
    const dependency = callees.find(({ callFrame }) => originOf(callFrame) === 'dependency')
    const via = dependency ? packageOf(dependency.callFrame.url) : null
    return { callFrame: owner.callFrame, via, call: called.functionName }
  })
  const isStream = (/** @type {typeof found.sites[number]} */ { call }) => STREAMS.test(call ?? '')
  return {
    ...found,
    sites: [...found.sites].sort((a, b) => Number(isStream(a)) - Number(isStream(b)))
  }
}

/** @param {import('./call-frames').CallFrame} frame */
const isOfUser = frame => ['app', 'dependency'].includes(originOf(frame))

module.exports = { fileOpens }
