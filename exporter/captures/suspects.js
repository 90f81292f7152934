'use strict'

const { blockingCallIn } = require('./blocking-calls')
const { cpuSuspects } = require('./cpu-suspects')
const { dataHandlers } = require('./data-handlers')
const { fileOpens } = require('./file-opens')
const { heapSuspects, innerSuspects } = require('./heap-suspects')
const { nativeCalls } = require('./native-calls')
const { OUTSIDE_HEAP } = require('./plan-capture')
const { Sources } = require('./sources')
const { listed, suspectAt, withinOf } = require('./suspect-list')

/** Shortest uninterrupted time of a site that counts as blocking the thread. */
const BLOCKED_SECONDS = 0.02

/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */
/**
 * Suspects of a profile. `of` names the total to which shares refer.
 * @typedef {import('@memwatch/engine/text/suspect-text').Suspects} Suspects
 * @typedef {import('@memwatch/engine/text/suspect-text').Suspect} Suspect
 */

/**
 * @param {Pick<import('./captures').Capture, 'kind' | 'parts' | 'diagnosis'> &
 *   { isEarly?: boolean, isOver?: boolean, names?: import('./rules').CaptureRule['names'],
 *   heapGrowthBytes?: number }} capture
 *   isEarly: true for a heap profile of which only the first reading is used; it also contains
 *   objects of unfinished requests. isOver: true if the profile no longer runs. names: see
 *   rules.js. heapGrowthBytes: see HeapProfiles
 * @param {(part: string) => any} read reads a part of the capture as a profile
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello hello of the target whose files may
 *   be read
 * @param {Sources} [sources] files of the app
 * @param {import('./heap-suspects').HeapProfiles | null} [heap] for a CPU profile that names
 *   functions inside a package: the heap profile that named the package; null if it is gone
 * @returns {Suspects | null} null for a kind that names no lines
 * @throws {Error} when a part is no profile
 */
function suspectsOf (
  { kind, parts, diagnosis, isEarly = false, isOver = false, names, heapGrowthBytes },
  read,
  hello,
  sources = Sources.of(hello),
  heap = undefined
) {
  const owns = diagnosis !== null && OUTSIDE_HEAP.has(diagnosis)
  if (kind === 'heap_profile' || kind === 'allocation_profile') {
    const before = parts.some(({ part }) => part === 'before') ? read('before') : undefined
    const of = kind === 'heap_profile' ? 'grown bytes' : 'allocated bytes'
    const profiles = {
      before,
      after: read('profile'),
      ...(kind === 'heap_profile' && { heapGrowthBytes })
    }
    return heapSuspects(profiles, { of, owns, isEarly, isOver }, hello, sources)
  }
  if (kind !== 'cpu_profile') return null
  const profile = read('profile')
  if (heap !== undefined) {
    return (heap && innerSuspects(profile, heap, owns, hello, sources)) ??
      { of: 'grown bytes', total: 0, sites: [], packages: [] }
  }
  if (names === 'handlers') return handlersOfBuffers(profile, hello, sources)
  if (names === 'opens') {
    return timeSites(fileOpens(profile, hello.agentFolder), 'opening seconds', hello, sources)
  }
  switch (diagnosis) {
    case 'native-memory-leak':
      return timeSites(nativeCalls(profile, hello.agentFolder), 'native seconds', hello, sources)
    case 'js-heap-leak':
      return timeSites(dataHandlers(profile, hello.agentFolder), 'handler seconds', hello, sources)
    default: return busySites(profile, hello, sources)
  }
}

/**
 * Least share of the busy time in handlers of data that makes them suspects of Buffers: nearly
 * every server has such a handler.
 */
const LEAST_HANDLER_SHARE = 0.03

/**
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {Hello} hello
 * @param {Sources} sources
 * @returns {Suspects} without sites if the app spends its time elsewhere
 */
function handlersOfBuffers (profile, hello, sources) {
  const found = dataHandlers(profile, hello.agentFolder)
  const { busySeconds } = cpuSuspects(profile, hello.agentFolder)
  const isMuch = found.totalSeconds >= LEAST_HANDLER_SHARE * busySeconds
  return timeSites(isMuch ? found : { ...found, sites: [] }, 'handler seconds', hello, sources)
}

/**
 * @param {import('./cpu-suspects').CpuProfile} profile
 * @param {Hello} hello
 * @param {Sources} sources
 * @returns {Suspects}
 */
function busySites (profile, hello, sources) {
  const { busySeconds, sites } = cpuSuspects(profile, hello.agentFolder)
  const found = sites.map(site => {
    const blocking =
      site.longestSeconds < BLOCKED_SECONDS
        ? undefined
        : site.call === null
          ? blockingCallAt(site, sources)
          : site
    const { call, instead } = blocking ?? { call: null, instead: null }
    return {
      ...suspectAt(site, site.seconds, sources, hello.name),
      within: withinOf(site, sources),
      call,
      instead,
      longestSeconds: site.longestSeconds
    }
  })
  return listed(found, { of: 'busy seconds', total: busySeconds, app: hello.name })
}

/**
 * @param {ReturnType<typeof nativeCalls>} time of one kind
 * @param {'native seconds' | 'handler seconds' | 'opening seconds'} of
 * @param {Hello} hello
 * @param {Sources} sources
 * @returns {Suspects}
 */
function timeSites ({ totalSeconds, sites }, of, hello, sources) {
  const found = sites.map(site => ({
    ...suspectAt(site, site.seconds, sources, hello.name),
    within: withinOf(site, sources),
    call: site.call !== null && mayCall(site, site.call, sources) ? site.call : null
  }))
  return listed(found, { of, total: totalSeconds, app: hello.name })
}

/** Lines of a function in which its calls are sought. */
const MOST_FUNCTION_LINES = 100
const CALL_NAME = /^[A-Za-z_$][\w$]*$/

/**
 * True if the text of a function contains a call of this name. V8 confuses the names of functions
 * of Node-API addons, because all of them begin at one address.
 * @param {import('./cpu-sites').CpuTimeSite} site
 * @param {string} name
 * @param {Sources} sources
 */
const mayCall = ({ file, line }, name, sources) => CALL_NAME.test(name) &&
  sources.lines(file, line, line + MOST_FUNCTION_LINES)
    .some(text => text.includes(`${name}(`) || text.includes(`${name} (`))

/**
 * Finds the blocking call on a line. V8's own work, such as JSON.parse, has no frame: its time is
 * the caller's own time, on the line of the call. A call that takes none of the time is not named.
 * @param {import('./cpu-suspects').CpuSite} site
 * @param {Sources} sources
 * @returns {{ call: string, instead: string } | undefined}
 */
function blockingCallAt ({ file, line, isLineOwn }, sources) {
  const [text] = isLineOwn ? sources.lines(file, line) : []
  return text === undefined ? undefined : blockingCallIn(text)
}

module.exports = { suspectsOf }
