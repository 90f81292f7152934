'use strict'

const { growthOf, steadiness } = require('./growth')
const { QUICK_SECONDS, loadShare } = require('./load-share')
const { DAY_SECONDS } = require('../statistics/unexplained-growth')

/** What rose with the load, which explains this share of it, is what the load takes. */
const LOAD_SHARE = 0.5

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
 * @param {TrackName} track
 * @param {string} what
 * @returns {Signal}
 */
const rise = (track, what) => ({
  unit: 'count',
  help: `What ${what} grew by, as a line.`,
  compute: window => growthOf(window, track).trend?.rise ?? null
})
/**
 * @param {TrackName} track
 * @param {string} what
 * @returns {Signal}
 */
const perSecond = (track, what) => ({
  unit: 'perSecond',
  help: `Growth of ${what} (Theil–Sen).`,
  compute: window => growthOf(window, track).trend?.slope ?? null
})
/**
 * @param {TrackName} track
 * @param {string} what
 * @returns {Signal}
 */
const steady = (track, what) => ({
  unit: 'ratio',
  help: `How much the growth of ${what} looks like one that goes on, 0–1: straight, not slowing ` +
    'down, and not with the load.',
  compute: window => {
    const found = growthOf(window, track)
    const steady = steadiness(found)
    if (!found.trend || !steady) return steady
    const span = found.trend.spanX > QUICK_SECONDS ? DAY_SECONDS : QUICK_SECONDS
    return (loadShare(window, track, span) ?? 0) >= LOAD_SHARE ? 0 : steady
  }
})

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

module.exports = {
  socketsOpen: now('sockets', 'Sockets and pipes'),
  socketsRise: rise('sockets', 'sockets and pipes'),
  socketsPerSecond: perSecond('sockets', 'sockets and pipes'),
  socketsSteadinessRatio: steady('sockets', 'sockets and pipes'),
  timersActive: now('timers', 'Active timers'),
  timersRise: rise('timers', 'active timers'),
  timersPerSecond: perSecond('timers', 'active timers'),
  timersSteadinessRatio: steady('timers', 'active timers'),
  watchersActive: now('watchers', 'File watchers'),
  watchersRise: rise('watchers', 'file watchers'),
  watchersPerSecond: perSecond('watchers', 'file watchers'),
  watchersSteadinessRatio: steady('watchers', 'file watchers'),
  childrenAlive: now('childProcesses', 'Child processes, workers and message ports'),
  childrenRise: rise('childProcesses', 'child processes, workers and message ports'),
  childrenPerSecond: perSecond('childProcesses', 'child processes, workers and message ports'),
  childrenSteadinessRatio: steady('childProcesses', 'child processes, workers and message ports'),
  fileDescriptorsOpen: now('openFileDescriptors', 'Open file descriptors'),
  fileDescriptorsRise: rise('openFileDescriptors', 'open file descriptors'),
  fileDescriptorsPerSecond: perSecond('openFileDescriptors', 'open file descriptors'),
  fileDescriptorsSteadinessRatio: steady('openFileDescriptors', 'open file descriptors'),
  threadsRunning: now('threads', 'Threads of the process'),
  threadsRise: rise('threads', 'threads of the process'),
  threadsPerSecond: perSecond('threads', 'threads of the process'),
  threadsSteadinessRatio: steady('threads', 'threads of the process'),
  socketDescriptorsOpen: now('socketDescriptors', 'Descriptors that are sockets'),
  pipeDescriptorsOpen: now('pipeDescriptors', 'Descriptors that are pipes'),
  fileDescriptorsOfFiles: now('fileDescriptors', 'Descriptors that are files, folders or devices'),
  loopDescriptorsOpen: now(
    'loopDescriptors',
    'Descriptors that are event polls: each thread with a loop has one'
  ),
  loopDescriptorsRise: rise('loopDescriptors', 'descriptors that are event polls'),
  socketDescriptorsRise: rise('socketDescriptors', 'descriptors that are sockets'),
  pipeDescriptorsRise: rise('pipeDescriptors', 'descriptors that are pipes'),
  fileDescriptorsOfFilesRise: rise(
    'fileDescriptors',
    'descriptors that are files, folders or devices'
  ),
  maxFileDescriptors: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Most file descriptors that may be open: the soft limit.',
    compute: window => window.values.maxFileDescriptors ?? null
  }),
  addonsSeen: /** @type {Signal} */ ({
    unit: 'count',
    expected: 'on the main thread, on Linux, within seconds',
    onMainThread: true,
    help: 'Native addons that are loaded; null before they were looked for.',
    compute: window => countAddons(window, '')
  }),
  v8AddonsLoaded: /** @type {Signal} */ ({
    unit: 'count',
    help: "Of those, the ones that use V8's C++ interface.",
    compute: window => countAddons(window, 'v8/')
  }),
  unreadAddonsLoaded: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Of those, the ones whose file could not be read.',
    compute: window => countAddons(window, 'unread/')
  }),
  listenerWarnings: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Emitters that Node warned of for having more listeners than expected.',
    compute: window => window.last('listenerWarnings') ?? null
  }),
  nativeContexts: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Native contexts now: one for the app, and one for each that node:vm made and nobody ' +
      'let go.',
    compute: window => window.last('nativeContexts') ?? null
  }),
  detachedContexts: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Contexts that are detached and not yet collected.',
    compute: window => window.values.detachedContexts ?? null
  }),
  nativeContextsRise: /** @type {Signal} */ ({
    unit: 'count',
    help: 'What the native contexts grew by, as a line across major GCs.',
    compute: window => growthOf(window, 'nativeContexts', { afterMajors: true }).trend?.rise ?? null
  }),
  nativeContextsPerSecond: /** @type {Signal} */ ({
    unit: 'perSecond',
    help: 'Growth of the native contexts across major GCs (Theil–Sen).',
    compute: window =>
      growthOf(window, 'nativeContexts', { afterMajors: true }).trend?.slope ?? null
  }),
  nativeContextsSteadinessRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'How much the growth of native contexts looks like one that goes on, 0–1.',
    compute: window => steadiness(growthOf(window, 'nativeContexts', { afterMajors: true }))
  }),
  codeSpaceRiseBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'What the code space grew by, as a line across major GCs.',
    compute: window => growthOf(window, 'codeSpaceBytes', { afterMajors: true }).trend?.rise ?? null
  }),
  codeSpaceSteadinessRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'How much the growth of the code space looks like one that goes on, 0–1.',
    compute: window => steadiness(growthOf(window, 'codeSpaceBytes', { afterMajors: true }))
  })
}
