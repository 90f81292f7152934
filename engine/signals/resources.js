'use strict'

const { growthOf, steadiness } = require('./growth')
const { acrossMajors, bytesTrend, countTrend, trendOf } = require('./trend-signal')
const { slowLoadGrowth } = require('./load-growth')
const { QUICK_SECONDS, loadShare, mostLoadShare } = require('./load-share')
const { median } = require('../statistics/quantile')
const { DAY_SECONDS } = require('../statistics/unexplained-growth')

/** The load counts as the cause of a rise if it explains this share of the rise. */
const LOAD_SHARE = 0.5

/**
 * Fall of a count, as a share of its rise, above which its handles come and go. A server under an
 * uneven load had 20 to 80 connections, with falls by 40.
 */
const FALL_SHARE = 0.5

/** Share of a rise at either end that does not count for its duration. */
const EDGE_SHARE = 0.1

/**
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/tracks').TrackName} TrackName
 */

/**
 * @param {TrackName} track
 * @param {string} what
 * @returns {Signal}
 */
const now = (track, what) => ({
  unit: 'count',
  help: `${what} now.`,
  compute: window => window.last(track) ?? null
})
/**
 * Duration of a rise. The window of a trend may be longer, as it includes a level part before the
 * rise, or after it.
 * @param {import('../history/window').Window} window
 * @param {TrackName} track
 * @param {number} seconds
 * @returns {number} seconds
 */
function risingSeconds (window, track, seconds) {
  const { times, values } = window.points(track, seconds)
  const first = values[0]
  const rise = values[values.length - 1] - first
  if (rise <= 0) return 0
  const from = values.findLastIndex(value => value <= first + EDGE_SHARE * rise)
  const to = values.findIndex(value => value >= first + (1 - EDGE_SHARE) * rise)
  return Math.max(0, times[to] - times[from]) / (1 - 2 * EDGE_SHARE)
}

/**
 * Growth of a count. Growth that the load explains does not count as steady, nor does growth with a
 * large fall: handles that pile up are not closed.
 * @param {TrackName} track
 * @param {string} what
 */
function trend (track, what) {
  const growth = growthOf(track)
  return countTrend(what, window => {
    const found = growth(window)
    const line = trendOf(found, steadinessOf(window, track, found))
    if (!line) return null
    // Most counts of most apps are constant, and nobody asks how long those rose.
    const rises = line.rise > 0
    line.risingSeconds = rises ? risingSeconds(window, track, line.seconds) : 0
    line.loadGrowth = rises ? slowLoadGrowth(window, line.seconds) : null
    return line
  })
}

/**
 * @param {import('../history/window').Window} window
 * @param {TrackName} track
 * @param {ReturnType<ReturnType<typeof growthOf>>} found
 * @returns {number | null} null without a trend
 */
function steadinessOf (window, track, found) {
  const steady = steadiness(found)
  if (!found.trend || !steady) return steady
  const { spanX: seconds, rise } = found.trend
  if (window.largestFall(track, seconds) > FALL_SHARE * rise) return 0
  const share = seconds > QUICK_SECONDS
    ? mostLoadShare(window, track, DAY_SECONDS)
    : loadShare(window, track)
  return (share ?? 0) >= LOAD_SHARE ? 0 : steady
}

/**
 * @param {import('../history/window').Window} window
 * @param {string} prefix
 */
const countAddons = ({ values: { addons } }, prefix) =>
  addons === undefined
    ? null
    : Object.entries(addons).reduce(
      (sum, [key, count]) => (key.startsWith(prefix) ? sum + count : sum),
      0
    )

/**
 * @param {import('../history/window').Window} window
 * @returns {number | null}
 */
function connectionsKept (window) {
  const { trend: line } = growthOf('sockets')(window)
  if (!line || line.rise <= 0) return null
  const accepted = window.increase('connectionsAccepted', window.nowSeconds - line.startX)
  if (!accepted || accepted.increase <= 0) return null
  return line.slope / (accepted.increase / accepted.overSeconds)
}

/** The recent growth of sockets, and the growth before it, in seconds before now. */
const EARLIER = Object.freeze({ from: 900, to: 600 })
/** Length of the slices whose medians are compared. */
const SLICE_SECONDS = 60

/**
 * @param {import('../history/window').Window} window
 * @returns {number | null} null without growth in the last ten minutes, or in a younger process
 */
function earlierGrowth (window) {
  const { times, values } = window.points('sockets', EARLIER.from)
  const { nowSeconds } = window
  /** @param {number} before seconds */
  const at = before => {
    const from = nowSeconds - before
    const near = values.filter((_, i) => times[i] >= from && times[i] <= from + SLICE_SECONDS)
    return near.length > 0 ? median(near) : NaN
  }
  const [oldest, before, now] = [EARLIER.from, EARLIER.to, SLICE_SECONDS].map(at)
  const recently = (now - before) / (EARLIER.to - SLICE_SECONDS)
  const earlier = (before - oldest) / (EARLIER.from - EARLIER.to)
  return recently > 0 && Number.isFinite(earlier) ? earlier / recently : null
}

module.exports = {
  socketsOpen: now('sockets', 'Sockets and pipes'),
  socketsTrend: trend('sockets', 'sockets and pipes'),
  connectionsKeptRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'while sockets of a server pile up',
    help: 'Growth of sockets and pipes, divided by the connections that servers of the isolate ' +
      'accepted meanwhile: near 1 if clients connect and stay connected.',
    compute: connectionsKept
  }),
  socketsEarlierGrowthRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'after fifteen minutes, while sockets pile up',
    afterEvent: true,
    help: 'Growth of sockets and pipes per second from fifteen to ten minutes ago, divided by ' +
      'their growth per second in the last ten minutes.',
    compute: earlierGrowth
  }),
  timersActive: now('timers', 'Active timers'),
  timersTrend: trend('timers', 'active timers'),
  watchersActive: now('watchers', 'File watchers'),
  watchersTrend: trend('watchers', 'file watchers'),
  childrenAlive: now('childProcesses', 'Child processes and workers'),
  childrenTrend: trend('childProcesses', 'child processes and workers'),
  messagePortsActive: now('messagePorts', 'Message ports'),
  messagePortsTrend: trend('messagePorts', 'message ports'),
  fileDescriptorsOpen: now('openFileDescriptors', 'Open file descriptors'),
  fileDescriptorsTrend: trend('openFileDescriptors', 'open file descriptors'),
  threadsRunning: now('threads', 'Threads of the process'),
  threadsTrend: trend('threads', 'threads of the process'),
  socketDescriptorsOpen: now('socketDescriptors', 'Descriptors that are sockets'),
  pipeDescriptorsOpen: now('pipeDescriptors', 'Descriptors that are pipes'),
  fileDescriptorsOfFiles: now('fileDescriptors', 'Descriptors that are files, folders or devices'),
  loopDescriptorsOpen: now(
    'loopDescriptors',
    'Descriptors of event polls, one for each thread with an event loop,'
  ),
  loopDescriptorsTrend: trend('loopDescriptors', 'descriptors that are event polls'),
  socketDescriptorsTrend: trend('socketDescriptors', 'descriptors that are sockets'),
  pipeDescriptorsTrend: trend('pipeDescriptors', 'descriptors that are pipes'),
  fileDescriptorsOfFilesTrend: trend(
    'fileDescriptors',
    'descriptors that are files, folders or devices'
  ),
  maxFileDescriptors: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Maximum of open file descriptors: the soft limit.',
    compute: window => window.values.maxFileDescriptors ?? null
  }),
  addonsSeen: /** @type {Signal} */ ({
    unit: 'count',
    expected: 'on the main thread, on Linux from /proc, within seconds',
    onMainThread: true,
    help: 'Loaded native addons; null before the first scan.',
    compute: window => countAddons(window, '')
  }),
  v8AddonsLoaded: /** @type {Signal} */ ({
    unit: 'count',
    help: "Loaded native addons that use V8's C++ interface.",
    compute: window => countAddons(window, 'v8/')
  }),
  unreadAddonsLoaded: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Loaded native addons whose file is unreadable.',
    compute: window => countAddons(window, 'unread/')
  }),
  listenerWarnings: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Warnings by Node.js about an emitter with too many listeners.',
    compute: window => window.last('listenerWarnings') ?? null
  }),
  nativeContexts: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Native contexts now: one for the app, and one for each living context of node:vm.',
    compute: window => window.last('nativeContexts') ?? null
  }),
  detachedContexts: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Detached contexts that are not collected yet.',
    compute: window => window.values.detachedContexts ?? null
  }),
  nativeContextsTrend: countTrend(
    'the native contexts across major GCs',
    acrossMajors('nativeContexts')
  ),
  codeSpaceTrend: bytesTrend('the code space across major GCs', acrossMajors('codeSpaceBytes'))
}
