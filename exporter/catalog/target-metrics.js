'use strict'

const { GC_PAUSE_BOUNDS_SECONDS, DELAY_BOUNDS_SECONDS, PAUSE_ROW } = require('@memwatch/agent/protocol/frame')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { anatomyIn } = require('@memwatch/engine/signals/anatomy-in')
const { shortText } = require('@memwatch/engine/text/suspect-text')
const { diagnoses } = require('@memwatch/engine/diagnoses/index')
const { pasteLine } = require('@memwatch/engine/fixes/paste-line')
const { fieldMetric, signalMetric, spaceMetric, cpuMetric, histogramMetric } = require('./metric')

/** @typedef {import('./metric').TargetMetric} TargetMetric */

/** Bounds of GC pauses that are exposed as series. */
const GC_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1]
/** Bounds of event loop delay that are exposed as series. */
const DELAY_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 1]

/** OpenTelemetry's names for attributes of a pod. */
const POD_NAMES = /** @type {import('./otel').OtelOverride} */ ({
  attributes: {
    k8s_namespace_name: 'k8s.namespace.name',
    k8s_pod_name: 'k8s.pod.name',
    k8s_pod_uid: 'k8s.pod.uid',
    k8s_container_name: 'k8s.container.name'
  }
})
/** Signals that are the share of a thread's time in GC pauses. @type {readonly string[]} */
const PAUSE_RATIOS = ['gcPauseRatio', 'recentGcPauseRatio', 'externalMajorPauseRatio']
/**
 * A cgroup's counters begin at the start of the cgroup, which may be before the start of the
 * process.
 */
const COUNTED_BY_GROUP = { otel: { startUnknown: true } }

/**
 * Maps a kind of GC to the kinds that prom-client and OpenTelemetry know: a minor mark-sweep
 * becomes a minor GC.
 * @param {string} kind
 */
const plainGcKind = kind => kind.replace('minor_mark_sweep', 'minor')

/**
 * Samples of memwatch_diagnosis. All targets share them, as each scrape would create thousands of
 * equal ones.
 */
const DIAGNOSIS_SAMPLES = diagnoses.map(({ id }) => {
  /**
   * @param {'confirmed' | 'suspected'} state
   * @param {0 | 1} value
   */
  const sample = (state, value) => ({ labels: { diagnosis: id, state }, value })
  return {
    id,
    confirmed: sample('confirmed', 1),
    notConfirmed: sample('confirmed', 0),
    suspected: sample('suspected', 1)
  }
})

/** @param {string} key of the `gc` field */
const gcLabels = key => {
  const [kind, cause] = key.split('/')
  return { kind, cause }
}

/**
 * @param {import('./metric').Labels} labels
 * @param {import('@memwatch/agent/protocol/frame').PauseRow} row
 * @returns {import('./metric').HistogramRow}
 */
const histogramRow = (labels, row) => ({
  labels,
  sum: row[PAUSE_ROW.sumSeconds],
  counts: row[PAUSE_ROW.buckets]
})

/** All metrics of a target under memwatch's own names. @type {readonly TargetMetric[]} */
const targetMetrics = Object.freeze([
  {
    name: 'memwatch_target_up',
    type: 'gauge',
    help: '1 while the agent is connected and its frames are fresh.',
    read: (target, { nowUnixMs }) => (target.isUp(nowUnixMs) ? 1 : 0)
  },
  {
    name: 'memwatch_target_info',
    type: 'gauge',
    help: 'Identity of the target: always 1. `service_name` and `service_version` are the ' +
      'name and version of the app; processes with the same name form a workload.',
    read: ({ hello }) => [
      {
        labels: {
          service_name: hello.name,
          service_version: hello.appVersion ?? '',
          node_version: hello.node,
          v8_version: hello.v8,
          libc: hello.libc,
          allocator: hello.allocator,
          pointer_compression: String(hello.pointerCompression),
          agent_version: hello.agent
        },
        value: 1
      }
    ]
  },
  {
    name: 'memwatch_target_pod_info',
    type: 'gauge',
    help: 'Place of the target in Kubernetes, from its environment: always 1. The labels do not ' +
      'collide with those of a scrape (pod, namespace).',
    otel: POD_NAMES,
    read: ({ hello: { pod } }) =>
      pod && [
        {
          labels: {
            k8s_namespace_name: pod.namespace ?? '',
            k8s_pod_name: pod.name ?? '',
            k8s_pod_uid: pod.uid ?? '',
            k8s_container_name: pod.container ?? ''
          },
          value: 1
        }
      ]
  },
  {
    name: 'memwatch_target_start_time_seconds',
    type: 'gauge',
    help: 'Start time of the isolate, Unix time.',
    read: ({ hello }) => hello.startedAtUnixMs / 1000
  },
  {
    name: 'memwatch_target_last_frame_timestamp_seconds',
    type: 'gauge',
    help: 'Time when the agent read the newest frame, Unix time.',
    read: ({ frame }) => frame && frame.atUnixMs / 1000
  },
  {
    name: 'memwatch_diagnosis',
    type: 'gauge',
    help: 'Verdict of each diagnosis: state `confirmed` is 1 or 0; state `suspected` is 1 or ' +
      'absent.',
    // Symptoms of a confirmed cause have the state `ok` here, so that they cause no alerts.
    read: target => {
      const { verdicts } = findCase(target)
      return DIAGNOSIS_SAMPLES.flatMap(({ id, confirmed, notConfirmed, suspected }) => {
        const state = verdicts.find(({ diagnosis }) => diagnosis === id)?.state
        if (state === 'suspected') return [notConfirmed, suspected]
        return state === 'confirmed' ? confirmed : notConfirmed
      })
    }
  },
  {
    name: 'memwatch_verdict_info',
    type: 'gauge',
    help: 'A confirmed verdict with its fix and the ruled-out diagnoses: always 1, absent ' +
      'without one.',
    read: target =>
      confirmedOn(target).map(verdict => ({
        labels: {
          diagnosis: verdict.diagnosis,
          severity: verdict.severity,
          fix: pasteLine(verdict.fix[0]),
          runbook: verdict.runbook ?? '',
          ruled_out: verdict.ruledOut.map(({ diagnosis }) => diagnosis).join(', ')
        },
        value: 1
      }))
  },
  {
    name: 'memwatch_suspect_info',
    type: 'gauge',
    help: 'Lines of code identified by the last profile for a diagnosis, worst first: always 1, ' +
      'absent without one.',
    read: target =>
      [...findCase(target).suspects].flatMap(([diagnosis, attached]) => {
        const { kind, suspects: found } = attached
        const text = shortText(found)
        return text === ''
          ? []
          : [{ labels: { diagnosis, capture: kind, suspects: text }, value: 1 }]
      })
  },
  {
    name: 'memwatch_verdict_start_timestamp_seconds',
    type: 'gauge',
    help: 'Time when a verdict was confirmed, Unix time; absent without one.',
    read: target =>
      confirmedOn(target).map(({ diagnosis, confirmedAfterSeconds }) => ({
        labels: { diagnosis },
        value: target.hello.startedAtUnixMs / 1000 + (confirmedAfterSeconds ?? 0)
      }))
  },
  {
    name: 'memwatch_verdict_saving_bytes',
    type: 'gauge',
    help: 'Predicted reduction of RSS by the first fix of a confirmed verdict; absent for fixes ' +
      'of other problems.',
    read: target =>
      confirmedOn(target).flatMap(({ diagnosis, fix }) => {
        const rss = fix[0]?.predicted.find(({ signal }) => signal === 'rssBytes')
        return rss && rss.to < rss.from ? [{ labels: { diagnosis }, value: rss.from - rss.to }] : []
      })
  },

  {
    name: 'memwatch_verdict_saving_cores',
    type: 'gauge',
    help: 'Predicted reduction of GC pauses by the first fix of a confirmed verdict, in cores. ' +
      'The reduction in GC threads is not included. Absent for fixes of other problems.',
    read: target =>
      confirmedOn(target).flatMap(({ diagnosis, fix }) => {
        const pauses = fix[0]?.predicted.find(({ signal }) => PAUSE_RATIOS.includes(signal))
        return pauses && pauses.to < pauses.from
          ? [{ labels: { diagnosis }, value: pauses.from - pauses.to }]
          : []
      })
  },

  fieldMetric('memwatch_rss_bytes', 'gauge', 'rssBytes', 'Resident set size of the process.', {
    promClient: ['process_resident_memory_bytes'],
    otel: { name: 'process.memory.usage', instrument: 'updowncounter', integer: true }
  }),
  fieldMetric(
    'memwatch_rss_anon_bytes',
    'gauge',
    'rssAnonBytes',
    'Resident anonymous memory of the process.'
  ),
  fieldMetric(
    'memwatch_rss_file_bytes',
    'gauge',
    'rssFileBytes',
    'Resident file mappings of the process.'
  ),
  fieldMetric('memwatch_swap_bytes', 'gauge', 'swapBytes', 'Swapped-out memory of the process.'),
  fieldMetric('memwatch_threads', 'gauge', 'threads', 'Threads of the process.', {
    otel: {
      name: 'process.thread.count',
      unit: '{thread}',
      instrument: 'updowncounter',
      integer: true
    }
  }),
  fieldMetric(
    'memwatch_malloc_heap_bytes',
    'gauge',
    'mallocHeapBytes',
    'Extent of the main malloc arena, [heap].'
  ),
  fieldMetric(
    'memwatch_malloc_arena_bytes',
    'gauge',
    'mallocArenaBytes',
    'Writable extent of the 64 MiB glibc arenas.'
  ),
  fieldMetric('memwatch_malloc_arenas', 'gauge', 'mallocArenas', 'Number of 64 MiB glibc arenas.'),
  fieldMetric(
    'memwatch_worker_threads',
    'gauge',
    'workerThreads',
    'Worker threads, counted by their stacks, including those that send no frames.'
  ),
  {
    name: 'memwatch_memory_bytes',
    type: 'gauge',
    help: 'Resident memory of the process by use: the parts add up to RSS.',
    read: (_, { window }) =>
      Object.entries(anatomyIn(window)?.parts ?? {}).map(([part, value]) => ({
        labels: { part },
        value
      }))
  },
  {
    name: 'memwatch_allocator_retained_bounds_bytes',
    type: 'gauge',
    help: 'Lower and upper bound of the memory that malloc retains: equal if malloc\'s ' +
      'statistics were read.',
    read: (_, { window }) =>
      anatomyIn(window)?.retainedBytes.map((value, i) => ({
        labels: { bound: i === 0 ? 'least' : 'most' },
        value
      }))
  },
  signalMetric('memwatch_allocator_retained_bytes', 'allocatorRetainedBytes'),
  signalMetric('memwatch_allocator_trimmable_bytes', 'allocatorTrimmableBytes'),

  fieldMetric(
    'memwatch_container_limit_bytes',
    'gauge',
    'containerLimitBytes',
    'Memory limit of the container; absent without one.'
  ),
  fieldMetric(
    'memwatch_container_high_bytes',
    'gauge',
    'containerHighBytes',
    'memory.high of the container; absent without one.'
  ),
  fieldMetric(
    'memwatch_container_usage_bytes',
    'gauge',
    'containerUsageBytes',
    'Memory that the cgroup charges.',
    { otel: { name: 'container.memory.usage', instrument: 'updowncounter', integer: true } }
  ),
  fieldMetric(
    'memwatch_container_working_set_bytes',
    'gauge',
    'containerWorkingSetBytes',
    'memwatch_container_usage_bytes less inactive file cache, the working set of the kubelet.',
    { otel: { name: 'container.memory.working_set', instrument: 'updowncounter', integer: true } }
  ),
  fieldMetric(
    'memwatch_container_limit_hits_total',
    'counter',
    'containerLimitHits',
    'Times the cgroup reached its memory limit.',
    COUNTED_BY_GROUP
  ),
  fieldMetric(
    'memwatch_container_high_hits_total',
    'counter',
    'containerHighHits',
    'Times the cgroup was throttled at memory.high.',
    COUNTED_BY_GROUP
  ),
  fieldMetric(
    'memwatch_container_oom_events_total',
    'counter',
    'containerOomEvents',
    'Times the cgroup was out of memory.',
    COUNTED_BY_GROUP
  ),
  fieldMetric(
    'memwatch_container_oom_kills_total',
    'counter',
    'containerOomKills',
    'Processes of the cgroup that the kernel killed for memory.',
    COUNTED_BY_GROUP
  ),
  fieldMetric(
    'memwatch_memory_pressure_some_seconds_total',
    'counter',
    'memoryPressureSomeSeconds',
    'Time in which some task of the cgroup waited for memory.',
    COUNTED_BY_GROUP
  ),
  fieldMetric(
    'memwatch_memory_pressure_full_seconds_total',
    'counter',
    'memoryPressureFullSeconds',
    'Time in which all tasks of the cgroup waited for memory.',
    COUNTED_BY_GROUP
  ),
  fieldMetric(
    'memwatch_cpu_pressure_some_seconds_total',
    'counter',
    'cpuPressureSomeSeconds',
    'Time in which some task of the cgroup waited for CPU.',
    COUNTED_BY_GROUP
  ),
  fieldMetric(
    'memwatch_cpu_quota_cores',
    'gauge',
    'cpuQuotaCores',
    'CPU quota of the container; absent without one.'
  ),
  fieldMetric(
    'memwatch_cpu_periods_total',
    'counter',
    'cpuPeriods',
    'Enforcement periods of the CPU quota.',
    COUNTED_BY_GROUP
  ),
  fieldMetric(
    'memwatch_cpu_throttled_periods_total',
    'counter',
    'cpuThrottledPeriods',
    'Periods in which the quota ran out.',
    COUNTED_BY_GROUP
  ),
  fieldMetric(
    'memwatch_cpu_throttled_seconds_total',
    'counter',
    'cpuThrottledSeconds',
    'Time spent throttled by the CPU quota.',
    COUNTED_BY_GROUP
  ),

  fieldMetric(
    'memwatch_heap_used_bytes',
    'gauge',
    'heapUsedBytes',
    'Used V8 heap, including garbage.',
    { promClient: ['nodejs_heap_size_used_bytes'] }
  ),
  fieldMetric(
    'memwatch_heap_committed_bytes',
    'gauge',
    'heapTotalBytes',
    'Committed V8 heap.',
    { promClient: ['nodejs_heap_size_total_bytes'] }
  ),
  fieldMetric(
    'memwatch_heap_physical_bytes',
    'gauge',
    'heapPhysicalBytes',
    'Resident V8 heap.'
  ),
  fieldMetric(
    'memwatch_heap_size_limit_bytes',
    'gauge',
    'heapSizeLimitBytes',
    'Maximum size of the V8 heap.'
  ),
  fieldMetric(
    'memwatch_heap_allocated_bytes_total',
    'counter',
    'heapAllocatedBytes',
    'Bytes allocated on the V8 heap since the isolate started.'
  ),
  fieldMetric(
    'memwatch_live_heap_bytes',
    'gauge',
    'liveHeapBytes',
    'Heap that survived the last major GC; absent before the first.'
  ),
  signalMetric('memwatch_live_heap_growth_bytes_per_second', 'liveHeapGrowthBytesPerSecond'),
  fieldMetric(
    'memwatch_external_bytes',
    'gauge',
    'externalBytes',
    'Memory outside the heap that V8 objects own.',
    { promClient: ['nodejs_external_memory_bytes'] }
  ),
  fieldMetric(
    'memwatch_array_buffers_bytes',
    'gauge',
    'arrayBuffersBytes',
    'Memory of ArrayBuffers and Buffers, part of external.'
  ),
  fieldMetric(
    'memwatch_malloced_bytes',
    'gauge',
    'mallocedBytes',
    'Memory that V8 itself allocated by malloc.'
  ),
  fieldMetric(
    'memwatch_native_contexts',
    'gauge',
    'nativeContexts',
    'Living native contexts: vm contexts and realms.'
  ),
  fieldMetric(
    'memwatch_detached_contexts',
    'gauge',
    'detachedContexts',
    'Detached contexts that are not collected yet.'
  ),
  spaceMetric(
    'memwatch_heap_space_used_bytes',
    'usedBytes',
    'Used size of a heap space.',
    'v8js.memory.heap.used',
    { promClient: ['nodejs_heap_space_size_used_bytes'] }
  ),
  spaceMetric(
    'memwatch_heap_space_committed_bytes',
    'sizeBytes',
    'Committed size of a heap space.',
    'v8js.memory.heap.space.size',
    { promClient: ['nodejs_heap_space_size_total_bytes'] }
  ),
  spaceMetric(
    'memwatch_heap_space_physical_bytes',
    'physicalBytes',
    'Resident size of a heap space.',
    'v8js.memory.heap.space.physical_size'
  ),
  signalMetric('memwatch_semi_space_capacity_bytes', 'semiSpaceCapacityBytes'),
  signalMetric('memwatch_semi_space_max_bytes', 'semiSpaceMaxBytes'),

  histogramMetric(
    'memwatch_gc_pause_seconds',
    'GC pauses by kind and cause; every GC counts.',
    {
      bounds: GC_PAUSE_BOUNDS_SECONDS,
      exposed: GC_BUCKETS,
      rows: ({ values }) =>
        Object.entries(values.gc ?? {}).map(([key, row]) => histogramRow(gcLabels(key), row)),
      promClient: ['nodejs_gc_duration_seconds'],
      otel: {
        name: 'v8js.gc.duration',
        attributes: { kind: 'v8js.gc.type', cause: 'memwatch.gc.cause' },
        value: plainGcKind
      }
    }
  ),
  {
    name: 'memwatch_gc_longest_pause_seconds',
    type: 'gauge',
    help: 'Longest GC pause in the last frame, by kind and by cause.',
    read: ({ values }) =>
      Object.entries(values.gc ?? {}).map(([key, row]) => ({
        labels: gcLabels(key),
        value: row[PAUSE_ROW.longestSeconds]
      }))
  },
  histogramMetric(
    'memwatch_event_loop_delay_seconds',
    'Delay of a timer due at a random moment, without sampling bias.',
    {
      bounds: DELAY_BOUNDS_SECONDS,
      exposed: DELAY_BUCKETS,
      rows: ({ values: { eventLoopDelay } }) =>
        eventLoopDelay ? [histogramRow({}, eventLoopDelay)] : []
    }
  ),
  fieldMetric(
    'memwatch_event_loop_active_seconds_total',
    'counter',
    'eventLoopActiveSeconds',
    'Time in which the event loop was not waiting.',
    { otel: { name: 'nodejs.eventloop.time', always: { 'nodejs.eventloop.state': 'active' } } }
  ),
  fieldMetric(
    'memwatch_event_loop_idle_seconds_total',
    'counter',
    'eventLoopIdleSeconds',
    'Time in which the event loop was waiting.',
    { otel: { name: 'nodejs.eventloop.time', always: { 'nodejs.eventloop.state': 'idle' } } }
  ),
  fieldMetric(
    'memwatch_event_loop_iterations_total',
    'counter',
    'eventLoopIterations',
    'Turns of the event loop.'
  ),
  fieldMetric(
    'memwatch_event_loop_events_total',
    'counter',
    'eventLoopEvents',
    'Events of sockets, files and the thread pool that the event loop handled, without timers.'
  ),
  cpuMetric(
    'memwatch_thread_cpu_seconds_total',
    'CPU time of the thread, if Node.js reports it.',
    'threadCpuUserSeconds',
    'threadCpuSystemSeconds'
  ),
  fieldMetric(
    'memwatch_thread_run_queue_wait_seconds_total',
    'counter',
    'runQueueWaitSeconds',
    'Time in which the thread was ready to run but had no CPU, because of throttling or other ' +
      'processes on the machine.'
  ),
  cpuMetric(
    'memwatch_process_cpu_seconds_total',
    'CPU time of the process.',
    'cpuUserSeconds',
    'cpuSystemSeconds',
    {
      promClient: [
        'process_cpu_user_seconds_total',
        'process_cpu_system_seconds_total',
        'process_cpu_seconds_total'
      ],
      otel: { name: 'process.cpu.time', attributes: { mode: 'cpu.mode' } }
    }
  ),
  {
    name: 'memwatch_active_resources',
    type: 'gauge',
    help: 'Active resources that keep the event loop alive, by type.',
    promClient: ['nodejs_active_resources'],
    otel: {
      name: 'v8js.resource.active',
      unit: '{resource}',
      integer: true,
      attributes: { resource: 'v8js.resource.type' }
    },
    read: ({ values }) =>
      Object.entries(values.resources ?? {}).map(([type, value]) => ({
        labels: { resource: type },
        value
      }))
  },
  fieldMetric(
    'memwatch_agent_gc_observer_stopped',
    'gauge',
    'gcObserverStopped',
    '1 while the agent has stopped observing GCs, because observing them may have caused them; ' +
      'GC counts stand still. Absent before the first stop.'
  ),
  fieldMetric(
    'memwatch_agent_gc_unobserved_seconds_total',
    'counter',
    'gcUnobservedSeconds',
    'Time in which the agent had stopped observing GCs; see memwatch_agent_gc_observer_stopped.'
  ),
  fieldMetric(
    'memwatch_agent_errors_total',
    'counter',
    'agentErrors',
    'Errors that the agent caught in its own code.'
  ),
  fieldMetric(
    'memwatch_agent_frames_dropped_total',
    'counter',
    'framesDropped',
    'Frames that the agent dropped because the exporter was away or slow.'
  ),
  fieldMetric(
    'memwatch_agent_collect_seconds_total',
    'counter',
    'collectSeconds',
    'Main-thread time spent in the agent.'
  ),
  {
    name: 'memwatch_target_frames_lost_total',
    type: 'counter',
    help: 'Frames that the agent sent or skipped and that never arrived.',
    read: ({ framesLost }) => framesLost
  }
])

/** @param {import('@memwatch/engine/history/target').Target} target */
const confirmedOn = target => findCase(target).verdicts.filter(({ state }) => state === 'confirmed')

module.exports = { targetMetrics, plainGcKind }
