'use strict'

const path = require('node:path')
const { loadedAllocator } = require('@memwatch/agent/protocol/allocators')
const { splitNodeOptions, plainFlags } = require('@memwatch/agent/protocol/node-options')
const { defineSource, SourceError } = require('./define-source')
const { readJson, count, present } = require('./read-json')

/**
 * Tolerance of the start time of one process: its age is known only in whole seconds, and clocks
 * may be set.
 */
const SAME_LIFE_SECONDS = 5
/**
 * Names in process.getActiveResourcesInfo() by libuv's names of handles. Timers of JavaScript are
 * no libuv handles.
 */
const HANDLES = Object.freeze({
  tcp: 'TCPSocketWrap',
  pipe: 'PipeWrap',
  udp: 'UDPWrap',
  tty: 'TTYWrap',
  fs_event: 'FSEventWrap',
  fs_poll: 'StatWatcher',
  process: 'ProcessWrap'
})

const report = defineSource({
  id: 'report',
  title: 'a diagnostic report',
  accepted: "Node's diagnostic reports (report.*.json), one or several of a process",
  fields: [
    'rssBytes',
    'maxFileDescriptors',
    'cpuUserSeconds',
    'cpuSystemSeconds',
    'containerLimitBytes',
    'heapUsedBytes',
    'heapTotalBytes',
    'heapPhysicalBytes',
    'heapExecutableBytes',
    'heapSizeLimitBytes',
    'externalBytes',
    'mallocedBytes',
    'peakMallocedBytes',
    'globalHandlesBytes',
    'nativeContexts',
    'detachedContexts',
    'spaces',
    'eventLoopActiveSeconds',
    'eventLoopIdleSeconds',
    'threadCpuUserSeconds',
    'threadCpuSystemSeconds',
    'resources'
  ],
  tellsMachine: true,
  lacks: 'GCs and the live heap, memory outside the heap, and the time between two reports',
  unsure: { '*': 'a report shows one moment' },
  accepts: head => /^\s*\{\s*"header"\s*:\s*\{/.test(head) && head.includes('"reportVersion"'),

  async read (inputs, lives, given) {
    const reports = []
    for (const input of inputs) {
      const found = await readJson(input, report.title)
      if (!found?.header?.nodejsVersion || !found.javascriptHeap) {
        throw new SourceError(
          `${input.name}: the report has no heap: it is damaged, or from Node.js before 12`
        )
      }
      if (
        !/^(GetReport|WriteReport|API|Signal)$/.test(found.header.trigger ?? 'API') &&
        found.header.event !== 'JavaScript API'
      ) {
        lives.notes.add(
          `${input.name} was written because of this event: ` +
            `${String(found.header.event).slice(0, 200)} ` +
            `(${String(found.header.trigger).slice(0, 40)})`
        )
      }
      reports.push(...withWorkers(found))
    }
    reports.sort((a, b) => atUnixMs(a) - atUnixMs(b))
    /**
     * @type {{ key: string, startedAtUnixMs: number, life: import('./lives').Life | undefined }[]}
     */
    const open = []
    for (const item of reports) {
      const key = `${item.header.host}:${item.header.processId}:${item.header.threadId ?? 0}`
      const startedAtUnixMs = atUnixMs(item) - uptimeSeconds(item) * 1000
      let known = open.find(
        other =>
          other.key === key &&
          Math.abs(other.startedAtUnixMs - startedAtUnixMs) < SAME_LIFE_SECONDS * 1000
      )
      if (!known) {
        open.push(
          (known = { key, startedAtUnixMs, life: lives.open(helloOf(item, startedAtUnixMs)) })
        )
      }
      const upSeconds = (atUnixMs(item) - known.startedAtUnixMs) / 1000
      known.life?.frame(upSeconds, valuesOf(item, upSeconds, given))
    }
  }
})

/**
 * Reports of a process and its worker threads.
 * @param {any} item
 * @returns {any[]}
 */
const withWorkers = item => [item, ...(Array.isArray(item.workers) ? item.workers.filter((/** @type {any} */ worker) => worker?.javascriptHeap && worker.header).flatMap(withWorkers) : [])]

/** @param {any} item */
const atUnixMs = ({ header }) => Number(header.dumpEventTimeStamp) || 0

/**
 * Age of the process. The report does not contain it, so it is computed from the CPU time and the
 * CPU usage in percent.
 * @param {any} item
 */
function uptimeSeconds ({ resourceUsage }) {
  const { userCpuSeconds, kernelCpuSeconds, cpuConsumptionPercent: percent } = resourceUsage ?? {}
  const seconds = (userCpuSeconds + kernelCpuSeconds) * 100 / percent
  return Number.isFinite(seconds) && seconds >= 0 ? Math.round(seconds) : 0
}

/**
 * @param {any} item
 * @returns {number | undefined} limit that Node.js saw. Without a limit the report contains 0, or
 *   about 2^63 or 2^64
 */
function constrainedBytes ({ resourceUsage }) {
  const limit = count(resourceUsage?.constrained_memory)
  return limit && limit < (count(resourceUsage?.total_memory) ?? 0) ? limit : undefined
}

/** Options whose value is the next word. */
const TAKES_A_VALUE =
  /^(-[a-zA-Z]*[epr]|--(eval|print|require|import|loader|experimental-loader|title))$/

/**
 * @param {any} item
 * @param {number} startedAtUnixMs
 * @returns {Partial<import('@memwatch/agent/protocol/frame').Hello> & { name: string }}
 */
function helloOf (item, startedAtUnixMs) {
  const { header, environmentVariables, sharedObjects, resourceUsage } = item
  const command = Array.isArray(header.commandLine) ? header.commandLine.map(String) : []
  const script = command.findIndex((/** @type {string} */ word, /** @type {number} */ i) =>
    i > 0 && !word.startsWith('-') && !TAKES_A_VALUE.test(command[i - 1]))
  const objects = Array.isArray(sharedObjects) ? sharedObjects.join('\n') : undefined
  const options = environmentVariables?.NODE_OPTIONS
  const known = present({
    host: String(header.host ?? ''),
    pid: count(header.processId) ?? 0,
    threadId: count(header.threadId) ?? 0,
    startedAtUnixMs,
    node: String(header.nodejsVersion).replace(/^v/, ''),
    v8: String(header.componentVersions?.v8 ?? 'unknown'),
    platform: String(header.platform ?? 'unknown'),
    arch: String(header.arch ?? 'unknown'),
    ...loadedAllocator(objects),
    execArgv: plainFlags(script > 0 ? command.slice(1, script) : command.slice(1)),
    nodeOptions: typeof options === 'string' ? plainFlags(splitNodeOptions(options)) : undefined,
    hostMemoryBytes: count(resourceUsage?.total_memory),
    constrainedBytes: constrainedBytes(item)
  })
  return {
    ...known,
    name:
      script > 0
        ? path
          .basename(command[script])
          .replace(/\.[cm]?[jt]s$/, '')
          .slice(0, 128) || 'node'
        : 'node'
  }
}

/**
 * @param {any} item
 * @param {number} upSeconds
 * @param {import('./define-source').Given} given
 * @returns {import('@memwatch/agent/protocol/frame').Values}
 */
function valuesOf (item, upSeconds, given) {
  const { javascriptHeap: heap, header, libuv } = item
  const [resourceUsage, thread, userLimits] = [
    item.resourceUsage ?? {},
    item.uvthreadResourceUsage ?? {},
    item.userLimits ?? {}
  ]
  const own = (header.threadId ?? 0) === 0
  const idle = Array.isArray(libuv)
    ? count(libuv.find(handle => handle?.type === 'loop')?.loopIdleTimeSeconds)
    : undefined
  /** @type {import('@memwatch/agent/protocol/frame').Values} */
  const values = {
    rssBytes: own ? count(resourceUsage.rss) : undefined,
    cpuUserSeconds: own ? count(resourceUsage.userCpuSeconds) : undefined,
    cpuSystemSeconds: own ? count(resourceUsage.kernelCpuSeconds) : undefined,
    containerLimitBytes: own ? (given.containerLimitBytes ?? constrainedBytes(item)) : undefined,
    maxFileDescriptors: count(userLimits.open_files?.soft),
    heapUsedBytes: count(heap.usedMemory),
    heapTotalBytes: count(heap.totalMemory),
    // The report uses this name for V8's total_physical_size.
    heapPhysicalBytes: count(heap.totalCommittedMemory),
    heapExecutableBytes: count(heap.executableMemory),
    heapSizeLimitBytes: count(heap.memoryLimit),
    externalBytes: count(heap.externalMemory),
    mallocedBytes: count(heap.mallocedMemory),
    peakMallocedBytes: count(heap.peakMallocedMemory),
    globalHandlesBytes: count(heap.usedGlobalHandlesMemory),
    nativeContexts: count(heap.nativeContextCount),
    detachedContexts: count(heap.detachedContextCount),
    spaces: Object.fromEntries(
      Object.entries(heap.heapSpaces ?? {}).map(([name, space]) => [name, spaceRow(space)])
    ),
    threadCpuUserSeconds: count(thread.userCpuSeconds),
    threadCpuSystemSeconds: count(thread.kernelCpuSeconds),
    eventLoopIdleSeconds: idle,
    eventLoopActiveSeconds: idle === undefined ? undefined : Math.max(0, upSeconds - idle),
    resources: resourcesOf(libuv)
  }
  return present(values)
}

/**
 * @param {any} space
 * @returns {import('@memwatch/agent/protocol/frame').SpaceRow}
 */
const spaceRow = space => [
  count(space?.used) ?? 0,
  count(space?.memorySize) ?? 0,
  count(space?.available) ?? 0,
  count(space?.committedMemory) ?? 0
]

/** Open handles by type. @param {any} handles */
function resourcesOf (handles) {
  if (!Array.isArray(handles)) return undefined
  /** @type {Record<string, number>} */
  const counts = {}
  for (const handle of handles) {
    const { type, remoteEndpoint } = handle ?? {}
    const name = HANDLES[/** @type {keyof typeof HANDLES} */ (type)]
    // A socket without a remote endpoint listens, so it is not counted as a connection.
    if (name && !(type === 'tcp' && remoteEndpoint === null)) counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

module.exports = { report }
