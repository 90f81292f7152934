'use strict'

const { originOf, ownerOf } = require('./call-frames')
const { cpuSites } = require('./cpu-sites')
const { packageOf } = require('@memwatch/engine/text/code-owner')

/** Functions of Node.js that leave a file or folder open for their caller to close. */
const OPENS = /^(?:open(?:Sync|AsBlob|dir|dirSync)?|(?:create)?(?:Read|Write)Stream)$/
const OF_FILES = /^node:(?:fs$|internal\/fs\/)/

/**
 * Finds the functions that open files. A file descriptor is a number, so a heap profile shows
 * nobody who keeps one. All opened files count, also those that are closed again.
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {string} [agentFolder]
 */
const fileOpens = (profile, agentFolder) => cpuSites(profile, agentFolder, stack => {
  // The function of Node.js that JavaScript of the app or of a package called.
  const caller = stack.findIndex(({ callFrame }) => isOfUser(callFrame))
  const called = stack[caller - 1]?.callFrame
  if (!called || !OPENS.test(called.functionName) || !OF_FILES.test(called.url)) return null
  const { owner, callees } = ownerOf(stack)
  if (!owner) return null
  const dependency = callees.find(({ callFrame }) => originOf(callFrame) === 'dependency')
  const via = dependency ? packageOf(dependency.callFrame.url) : null
  return { callFrame: owner.callFrame, via, call: called.functionName }
})

/** @param {import('./call-frames').CallFrame} frame */
const isOfUser = frame => ['app', 'dependency'].includes(originOf(frame))

module.exports = { fileOpens }
