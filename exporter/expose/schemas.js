'use strict'

const { kinds } = require('../captures/kinds')
const { capture, holders, suspects } = require('../captures/schema')
const { HEADLINE_STATES } = require('@memwatch/engine/verdicts/headline')
const { auditedBug, knownBug } = require('@memwatch/engine/known-bugs/schema')
const { evidence, severity, state } = require('@memwatch/engine/verdicts/schema')
const { SEVERITIES } = require('@memwatch/engine/diagnoses/define-diagnosis')
const { death, deathWithMinutes, ending } = require('../deaths/schema')
const { silenceCauses } = require('../deaths/silence')
const { followUp } = require('../follow-ups/schema')
const { GC_HOOKS_MISSING } = require('@memwatch/agent/protocol/frame')
const { array, nullable, number, object, text } = require('@memwatch/engine/text/json-schema')
const { problems } = require('./problems')
const { pageQuery } = require('./pagination')

/**
 * JSON Schemas of the API's answers. The schema of verdicts also becomes docs/report.schema.json,
 * the contract of `memwatch run --json`.
 */

/** A change, in every form that can make it. */
const change = object(
  {
    flag: text,
    env: { type: 'object', additionalProperties: text },
    dockerfile: text,
    memoryLimitBytes: {
      ...number,
      description: 'recommended memory limit of the container'
    },
    memoryRequestBytes: {
      ...number, description: 'recommended memory request, in addition to ' +
      'the limit'
    },
    cpuLimitCores: { ...number, description: 'recommended CPU limit of the container' },
    kubernetes: text,
    code: text,
    note: { ...text, description: 'parts that these forms leave out, with the reason' }
  },
  [
    'flag', 'env', 'dockerfile', 'memoryLimitBytes', 'memoryRequestBytes', 'cpuLimitCores',
    'kubernetes', 'code', 'note'
  ]
)

const verdict = object({
  diagnosis: text,
  title: text,
  state,
  severity,
  opportunity: {
    type: 'boolean',
    description: 'true for a saving in a healthy process; never primary'
  },
  confirmedAfterSeconds: {
    ...nullable('number'),
    description: 'age of the isolate when the verdict was confirmed'
  },
  isHeld: {
    type: 'boolean',
    description: 'a finding that is kept although the latest readings do not show it'
  },
  secondsLeft: {
    ...nullable('number'),
    description: 'time from the last frame until the process reaches a limit, at the present ' +
      'rate; null without growth, or if the time is unknown'
  },
  open: {
    anyOf: [
      object({
        until: {
          enum: ['readings', 'setting', 'main_thread', 'never', 'cause'],
          description:
            'readings: more readings of this run; setting: the setting that the summary names; ' +
              'main_thread: the verdict of the main thread; never: impossible here; cause: a ' +
              'measured effect has a cause that no diagnosis knows'
        },
        waitSeconds: {
          ...nullable('number'),
          description: 'time until there are enough readings; null if unknown'
        }
      }),
      { type: 'null' }
    ],
    description: 'requirement that decides the verdict; null once it is decided'
  },
  summary: text,
  evidence: array(evidence),
  ruledOut: array(object({ diagnosis: text, text })),
  impact: nullable('string'),
  suspects: {
    anyOf: [object({ captureId: text, kind: text, atUnixMs: number, suspects }), { type: 'null' }],
    description: 'lines of code identified by the last capture for this diagnosis'
  },
  captureError: {
    ...nullable('string'),
    description: 'reason why no capture could identify lines of code for this diagnosis; null if ' +
      'none failed'
  },
  holders: {
    anyOf: [holders, { type: 'null' }],
    description: 'piles of the last heap snapshot that belong to this diagnosis, and their holders'
  },
  knownBugs: {
    ...array(knownBug),
    description: 'published bugs of the versions in use that cause this diagnosis, likely ones first'
  },
  mallocAddons: {
    anyOf: [array(text), { type: 'null' }],
    description: 'native-memory-leak: loaded addons with their own malloc; null if the exporter ' +
      'cannot read their files'
  },
  loadedAddons: {
    anyOf: [array(text), { type: 'null' }],
    description: 'native-memory-leak: file names of the loaded addons, if one may hold the ' +
      'memory; null if they are unknown'
  },
  openHandles: {
    anyOf: [array(object({ count: number, text })), { type: 'null' }],
    description: 'resource-leak: descriptors by path or peer and threads by name, most frequent ' +
      'first; null if the exporter cannot read /proc/PID'
  },
  followUp: {
    anyOf: [followUp, { type: 'null' }],
    description: 'result of an advised fix that this process runs with'
  },
  fix: array(
    object({
      title: text,
      change,
      predicted: array(object({ signal: text, name: text, from: number, to: number, unit: text })),
      risk: text
    })
  ),
  runbook: nullable('string')
})

const headline = {
  ...object({
    state: { enum: HEADLINE_STATES },
    diagnosis: {
      ...nullable('string'),
      description: "id of the thread's own finding; null without one, also if a worker has one"
    },
    severity: { enum: [...SEVERITIES, null] },
    text,
    waitSeconds: {
      ...nullable('number'),
      description: 'time until the open checks are decided; null if unknown'
    },
    confirmed: { type: 'integer', description: 'count of confirmed findings' },
    open: { ...array(text), description: 'undecided checks for critical problems' },
    notLookedAt: {
      ...array(object({ diagnosis: text, text })),
      description: 'checks for critical problems that are impossible here, with the reason'
    }
  }),
  description: 'all verdicts in one sentence; ok only if every critical problem is ruled out'
}

const memory = {
  anyOf: [
    object({
      rssBytes: number,
      parts: {
        ...array(object({ part: text, title: text, help: text, bytes: number })),
        description: 'parts of RSS; their sum is RSS'
      },
      retainedLeastBytes: {
        ...number,
        description: 'lower bound of the memory retained by malloc; 0 if malloc was not queried'
      },
      retainedMostBytes: { ...number, description: 'upper bound of the memory retained by malloc' },
      unknown: {
        ...nullable('string'), description: 'unknown parts on this system, with the ' +
        'reason'
      }
    }),
    { type: 'null' }
  ],
  description: 'RSS breakdown of the process; null for a worker'
}

const targetName = { target: text, thread: text, pid: { type: 'integer' }, node: text }

/** The present state of a target: its values and verdicts are those of its last frame. */
const presence = {
  up: { type: 'boolean', description: 'false once it ended or several frames are missing' },
  silence: {
    enum: [...Object.keys(silenceCauses), null],
    description: 'cause of the silence; null while the target sends frames, and after its end'
  }
}

const targets = array(
  object({
    ...targetName,
    pod: {
      anyOf: [
        {
          type: 'object',
          properties: {
            uid: text,
            name: text,
            namespace: text,
            container: text,
            injected: { type: 'boolean' }
          },
          additionalProperties: false
        },
        { type: 'null' }
      ],
      description: 'place in Kubernetes, from the variables of its environment'
    },
    nodeOptions: { ...array(text), description: 'the options in NODE_OPTIONS of the process' },
    v8: text,
    libc: text,
    allocator: text,
    gcCounter: {
      ...nullable('string'),
      description: "method of counting GCs. hooks: V8's own callbacks, at nearly no cost; " +
        'observer: a PerformanceObserver, at 40 to 100 µs of CPU a GC; null: not reported by its ' +
        'agent'
    },
    gcHooksMissing: {
      ...nullable('string'),
      description: `reason for the observer: ${GC_HOOKS_MISSING.join(', ')}`
    },
    ...presence,
    uptimeSeconds: number,
    lastFrameUnixMs: number,
    framesLost: { type: 'integer' },
    memory,
    values: {
      type: 'object',
      additionalProperties: true,
      description: 'newest value of every field of the wire protocol'
    }
  })
)

const diagnoses = array(object({
  ...targetName,
  ...presence,
  memory,
  headline,
  primary: { anyOf: [verdict, { type: 'null' }] },
  verdicts: array(verdict)
}))

const knownBugs = object({
  target: text,
  node: text,
  packages: {
    anyOf: [array(object({ name: text, version: text })), { type: 'null' }],
    description: 'installed packages in the table of known bugs, even if they are never loaded; ' +
      'null if the exporter cannot read the files of the process'
  },
  addons: {
    anyOf: [array(object({ name: text, version: nullable('string') })), { type: 'null' }],
    description: 'packages whose native addons are loaded; null if the exporter cannot read the ' +
      'files of the process'
  },
  bugs: { ...array(auditedBug), description: 'bugs first, then traps' }
})

const targetsQuery = {
  type: 'object',
  properties: {
    target: { ...text, description: 'name that the targets must have' },
    thread: text,
    ...pageQuery
  },
  additionalProperties: false
}

const recordingQuery = {
  type: 'object',
  properties: {
    target: { ...text, description: 'name of the target; default: all targets' },
    seconds: { type: 'integer', minimum: 1, maximum: 3600, default: 60 }
  },
  additionalProperties: false
}

const planQuery = {
  type: 'object',
  properties: {
    target: {
      ...text,
      description:
        'target to compare with; its version, limit and flags replace missing node, memory or flags'
    },
    node: {
      ...array(text),
      description:
        'versions of Node.js, as in 18,24 or 22.23.3: the current one, then candidates'
    },
    memory: { ...array(text), description: 'memory limits of the container, as in 512Mi,1Gi' },
    flags: { ...text, description: 'flags as in NODE_OPTIONS; added to those of the target' },
    hostMemory: {
      ...text,
      description:
        "memory of the machine, used if Node.js sees no limit; default: memory of the target's " +
          "machine, or without a target of the exporter's"
    },
    cgroup: {
      enum: ['v1', 'v2'],
      description: 'cgroup version; default: v2, where Node.js 18 sees no limit'
    }
  },
  additionalProperties: false
}

const plan = {
  ...array(
    object({
      node: text,
      memoryLimitBytes: { ...nullable('number'), description: 'null without a limit' },
      heapSizeLimitBytes: number,
      oldGenerationBytes: {
        ...nullable('number'),
        description: 'maximum of the old generation; null if unknown'
      },
      semiSpaceBytes: {
        ...nullable('number'), description: 'maximum of one semi-space; null if ' +
        'unknown'
      },
      newSpaceBytes: {
        ...nullable('number'), description: 'maximum of the new space, which is ' +
        'two semi-spaces; null if unknown'
      },
      flags: text,
      running: {
        type: 'boolean',
        description: 'true for the present settings of the target, as it reports them'
      },
      warnings: { ...array(text), description: 'sentences, worst first' }
    })
  ),
  description: 'rows by limit, then by version; the present settings of the target come first'
}

const rightSizeQuery = {
  type: 'object',
  properties: {
    target: { ...text, description: 'name of a target of the workload; its replicas count as well' },
    guaranteed: {
      type: 'boolean',
      default: false,
      description: 'true: request and limit are equal, as for a Guaranteed pod'
    }
  },
  required: ['target'],
  additionalProperties: false
}

const rightSize = object({
  target: text,
  state: {
    enum: ['sized', 'leak', 'no_history'],
    description: 'leak: a leak is confirmed, which no size can fix; no_history: nothing was ' +
      'measured'
  },
  confidence: { enum: ['low', 'medium', 'high'] },
  days: { ...number, description: 'observed time in days' },
  containers: { type: 'integer' },
  present: object({
    memoryLimitBytes: { ...nullable('number'), description: 'null without a limit' },
    heapSizeLimitBytes: nullable('number')
  }),
  sizes: {
    anyOf: [
      object({
        requestBytes: number,
        limitBytes: number,
        oldBytes: { ...number, description: 'maximum of the old generation' },
        semiSpaceBytes: number,
        flags: {
          type: 'object',
          additionalProperties: number,
          description:
            'flags that V8 needs for these sizes, in MiB; none if V8 chooses these sizes by itself'
        },
        unset: {
          anyOf: [
            object({ oldBytes: nullable('number'), semiSpaceBytes: nullable('number') }),
            { type: 'null' }
          ],
          description: 'sizes that V8 chooses in this container without flags; null if unknown'
        }
      }),
      { type: 'null' }
    ]
  },
  reasons: {
    type: 'object', additionalProperties: text, description: 'origin of each size, by its name'
  },
  notes: array(text),
  change: { anyOf: [change, { type: 'null' }], description: 'the sizes in the forms of a fix' }
})

/**
 * @param {readonly string[]} tracks
 * @param {readonly number[]} stepsSeconds
 */
const seriesQuery = (tracks, stepsSeconds) => ({
  type: 'object',
  properties: {
    track: {
      ...array({ enum: tracks }),
      minItems: 1,
      maxItems: 64,
      description: 'one or more tracks: track=rssBytes&track=scavenges'
    },
    thread: { ...text, default: 'main' },
    seconds: {
      type: 'integer',
      minimum: 1,
      maximum: 7 * 86_400,
      default: 600,
      description:
        'length of the window. Steps are 1 s up to 600 s, 10 s up to six hours, a minute up to a ' +
          'day, then ten minutes'
    },
    untilUnixMs: { type: 'number', minimum: 0, description: 'end of the window; default: now' },
    step: {
      type: 'integer',
      enum: stepsSeconds,
      description: 'length of a step in seconds; a step finer than the stored ones becomes coarser'
    }
  },
  required: ['track'],
  additionalProperties: false
})

const steps = array(nullable('number'))
/** @param {readonly number[]} stepsSeconds */
const series = stepsSeconds =>
  object({
    target: text,
    thread: text,
    stepSeconds: { enum: stepsSeconds },
    startedAtUnixMs: number,
    times: {
      ...array(number),
      description: 'age of the isolate in seconds, at the end of each step'
    },
    tracks: {
      type: 'object',
      additionalProperties: object(
        {
          last: steps,
          min: {
            ...steps,
            description: 'minimum of each step; absent for steps of one second, and for counters'
          },
          max: { ...steps, description: 'maximum of each step; absent like min' }
        },
        ['min', 'max']
      )
    }
  })

const deaths = { ...array(death), description: 'newest first' }
const followUps = { ...array(followUp), description: 'newest first' }

const deathsQuery = {
  type: 'object',
  properties: { target: text, ...pageQuery },
  additionalProperties: false
}

const trimQuery = {
  type: 'object',
  properties: { dryRun: { type: 'boolean', default: false } },
  additionalProperties: false
}

/** Problem that the API returns. */
const problem = object({
  type: text,
  title: text,
  status: number,
  detail: { ...text, description: 'a sentence for people' },
  code: { enum: Object.keys(problems), description: 'stable, for programs' }
})

/** Problem responses of every route. */
const refusals = Object.fromEntries(
  ['4xx', '5xx'].map(status => [
    status,
    { description: 'the reason, as problem details', content: { 'application/problem+json': { schema: problem } } }
  ])
)

const trimResult = object({
  target: text,
  predicted: object({
    asked: {
      type: 'boolean', description: 'true if malloc was queried; otherwise bytes is an ' +
      'estimate'
    },
    bytes: number,
    blockedSeconds: number,
    blockedAtMostSeconds: number
  }),
  done: {
    anyOf: [
      object({ rssBeforeBytes: number, rssAfterBytes: number, blockedSeconds: number }),
      { type: 'null' }
    ],
    description: 'null after a dry run'
  }
})

const captureQuery = {
  type: 'object',
  properties: {
    kind: { enum: Object.keys(kinds) },
    thread: { ...text, default: 'main' },
    seconds: { type: 'number', minimum: 0.1, maximum: 300 },
    force: {
      type: 'boolean',
      default: false,
      description: 'take a snapshot even if it could kill the process'
    }
  },
  required: ['kind'],
  additionalProperties: false
}

const captures = { ...array(capture), description: 'newest first' }

const processes = object({
  isEnabled: {
    type: 'boolean', description: 'true if the exporter was started with ' +
    '--attach-on-request on'
  },
  processes: {
    ...array(object({
      pid: { type: 'integer', description: 'process id as the exporter sees it' },
      startTimeTicks: {
        type: 'integer', description: 'start time in ticks of the kernel: with pid it identifies ' +
          'a process'
      },
      name: text,
      startedAtUnixMs: number,
      refusal: {
        ...nullable('string'), description: 'reason why the exporter cannot attach to the ' +
          'process; null if it can'
      }
    })),
    description: 'Node.js processes without an agent that reports to this exporter; newest first'
  }
})

const attachQuery = {
  type: 'object',
  properties: {
    startTimeTicks: {
      type: 'integer', minimum: 0, description: 'expected start time: the exporter refuses a new ' +
        'process with the same id'
    }
  },
  additionalProperties: false
}

const attached = object({
  pid: number,
  name: text,
  node: { ...text, description: 'version' },
  workers: object({ reached: number, all: number }),
  target: { ...nullable('string'), description: 'name of the target; null before its first frame' }
})

const capturesQuery = {
  type: 'object',
  properties: { target: text, ...pageQuery },
  additionalProperties: false
}

const capturePartQuery = {
  type: 'object',
  properties: { format: { enum: ['pprof'] } },
  additionalProperties: false
}

/** The report of `memwatch run --json` and `memwatch diagnose --json`. */
const report = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'memwatch run report',
  ...object(
    {
      schema: { const: 1 },
      command: array(text),
      durationSeconds: number,
      exit: object({ code: nullable('integer'), signal: nullable('string') }),
      attached: {
        ...object({
          pid: number,
          startedAtUnixMs: number,
          atUnixMs: { ...number, description: 'time when the agent was attached' },
          ended: { type: 'boolean', description: 'true if the process ended while it was watched' },
          workers: object({ reached: number, all: number })
        }),
        description: 'process that memwatch run --attach or memwatch triage attached to'
      },
      source: {
        ...object({
          kind: text,
          title: text,
          lacks: { ...text, description: 'facts that the source lacks' },
          cannotTell: array(object({ diagnosis: text, text })),
          limited: {
            ...array(object({ diagnosis: nullable('string'), text })),
            description: 'diagnoses with less certainty, and the reason; diagnosis null: all of ' +
              'them'
          },
          notes: {
            ...array(text),
            description: 'notes on the source: damaged lines, deaths of processes'
          }
        }),
        description:
          'memwatch diagnose: the source, if it is not a recording, and the checks that it ' +
            'cannot answer'
      },
      targets: array(
        object({
          ...targetName,
          memory,
          headline,
          primary: {
            anyOf: [verdict, { type: 'null' }],
            description:
              'the most severe confirmed verdict, causes before symptoms; null when ' +
              'nothing is confirmed'
          },
          verdicts: array(verdict)
        })
      ),
      deaths: {
        ...deaths,
        description: 'deaths of its processes, newest first; empty for a recording'
      },
      ending: {
        ...ending,
        description:
          'end of the command, if a signal ended it before any of its processes reported; ' +
            'otherwise absent'
      }
    },
    ['attached', 'source', 'ending']
  )
}

module.exports = {
  verdict,
  targets,
  knownBugs,
  targetsQuery,
  recordingQuery,
  planQuery,
  plan,
  rightSizeQuery,
  rightSize,
  seriesQuery,
  series,
  diagnoses,
  death,
  deaths,
  deathsQuery,
  followUps,
  deathWithMinutes,
  trimQuery,
  trimResult,
  captureQuery,
  capture,
  captures,
  capturesQuery,
  capturePartQuery,
  processes,
  attachQuery,
  attached,
  refusals,
  report
}
