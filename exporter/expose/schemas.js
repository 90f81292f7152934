'use strict'

const { kinds } = require('../captures/kinds')
const { capture, suspects } = require('../captures/schema')
const { HEADLINE_STATES } = require('@memwatch/engine/verdicts/headline')
const { evidence, severity, state } = require('@memwatch/engine/verdicts/schema')
const { SEVERITIES } = require('@memwatch/engine/diagnoses/define-diagnosis')
const { death, deathWithMinutes, ending } = require('../deaths/schema')
const { silenceCauses } = require('../deaths/silence')
const { GC_HOOKS_MISSING } = require('@memwatch/agent/protocol/frame')
const { array, nullable, number, object, text } = require('@memwatch/engine/text/json-schema')
const { problems } = require('./problems')
const { pageQuery } = require('./pagination')

/**
 * JSON Schemas of what the API answers. The verdict's also makes docs/report.schema.json, the
 * contract of `memwatch run --json`.
 */

const verdict = object({
  diagnosis: text,
  title: text,
  state,
  severity,
  opportunity: {
    type: 'boolean',
    description: 'something to gain where nothing is wrong: never primary'
  },
  confirmedAfterSeconds: {
    ...nullable('number'),
    description: 'age of the isolate when the verdict was confirmed'
  },
  secondsLeft: {
    ...nullable('number'),
    description: 'from the last frame until the process reaches the limit that it grows towards, ' +
      'at the present rate; null where nothing grows, or that cannot be told'
  },
  open: {
    anyOf: [
      object({
        until: {
          enum: ['readings', 'setting', 'main_thread', 'never'],
          description:
            'more of the same run; another setting, which the summary names; ' +
            'the verdict of the main thread; nothing here'
        },
        waitSeconds: {
          ...nullable('number'),
          description: 'until there are enough readings; null where that cannot be computed'
        }
      }),
      { type: 'null' }
    ],
    description: 'what would decide it; null where it is decided'
  },
  summary: text,
  evidence: array(evidence),
  ruledOut: array(object({ diagnosis: text, text })),
  impact: nullable('string'),
  suspects: {
    anyOf: [object({ captureId: text, kind: text, atUnixMs: number, suspects }), { type: 'null' }],
    description: 'the lines of code that the last capture for this diagnosis points at'
  },
  openHandles: {
    anyOf: [array(object({ count: number, text })), { type: 'null' }],
    description: 'of resource-leak: descriptors by path or peer and threads by name, the ' +
      'commonest first; null where /proc/PID cannot be read from here'
  },
  fix: array(
    object({
      title: text,
      change: object(
        {
          flag: text,
          env: { type: 'object', additionalProperties: text },
          dockerfile: text,
          memoryLimitBytes: {
            ...number,
            description: 'what to ask for as memory limit of the container'
          },
          kubernetes: text,
          code: text,
          note: { ...text, description: 'what the forms leave out, and why' }
        },
        ['flag', 'env', 'dockerfile', 'memoryLimitBytes', 'kubernetes', 'code', 'note']
      ),
      predicted: array(object({ signal: text, name: text, from: number, to: number, unit: text })),
      risk: text
    })
  ),
  runbook: nullable('string')
})

const headline = {
  ...object({
    state: { enum: HEADLINE_STATES },
    diagnosis: nullable('string'),
    severity: { enum: [...SEVERITIES, null] },
    text,
    waitSeconds: {
      ...nullable('number'),
      description: 'until the open checks are decided; null where that cannot be computed'
    },
    confirmed: { type: 'integer', description: 'count of confirmed findings' },
    open: { ...array(text), description: 'critical checks that are not decided yet' },
    notLookedAt: {
      ...array(object({ diagnosis: text, text })),
      description: 'critical checks that cannot be made here, and why'
    }
  }),
  description: 'the verdicts in one sentence; ok only where every critical check is ruled out'
}

const memory = {
  anyOf: [
    object({
      rssBytes: number,
      parts: {
        ...array(object({ part: text, title: text, help: text, bytes: number })),
        description: 'what RSS is made of; they add up to it'
      },
      retainedLeastBytes: {
        ...number,
        description: 'lower bound of what malloc retains: 0 where malloc was not asked'
      },
      retainedMostBytes: { ...number, description: 'upper bound of it' },
      unknown: { ...nullable('string'), description: 'what cannot be known here, and why' }
    }),
    { type: 'null' }
  ],
  description: 'where the resident memory of the process is; null for a worker'
}

const targetName = { target: text, thread: text, pid: { type: 'integer' }, node: text }

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
      description: 'where it runs in Kubernetes, as far as its environment says'
    },
    nodeOptions: { ...array(text), description: 'NODE_OPTIONS as the process has it, one by one' },
    v8: text,
    libc: text,
    allocator: text,
    gcCounter: {
      ...nullable('string'),
      description: "what counts its GCs: hooks, V8's own callbacks, for nothing; observer, a " +
        'PerformanceObserver, for 40 to 100 µs of CPU a GC; null: its agent does not say'
    },
    gcHooksMissing: {
      ...nullable('string'),
      description: `why it is the observer: ${GC_HOOKS_MISSING.join(', ')}`
    },
    up: { type: 'boolean' },
    silence: {
      enum: [...Object.keys(silenceCauses), null],
      description: 'why it sends nothing; null while it does, or is gone'
    },
    uptimeSeconds: number,
    lastFrameUnixMs: number,
    framesLost: { type: 'integer' },
    memory,
    values: {
      type: 'object',
      additionalProperties: true,
      description: 'the newest value of every field of the wire contract'
    }
  })
)

const diagnoses = array(object({
  ...targetName,
  memory,
  headline,
  primary: { anyOf: [verdict, { type: 'null' }] },
  verdicts: array(verdict)
}))

const targetsQuery = {
  type: 'object',
  properties: {
    target: { ...text, description: 'only those of this name' },
    thread: text,
    ...pageQuery
  },
  additionalProperties: false
}

const recordingQuery = {
  type: 'object',
  properties: {
    target: { ...text, description: 'only this one' },
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
        'what it is compared with, and what is taken where node, memory or flags are left out'
    },
    node: {
      ...array(text),
      description:
        'versions of Node.js, as in 18,24 or 22.23.3: where one comes from, then where one may go'
    },
    memory: { ...array(text), description: 'memory limits of the container, as in 512Mi,1Gi' },
    flags: { ...text, description: 'as NODE_OPTIONS holds them; added to those of the target' },
    hostMemory: {
      ...text,
      description:
        'of the machine, which counts where Node.js sees no limit; else that of the target or ' +
          'of the exporter'
    },
    cgroup: {
      enum: ['v1', 'v2'],
      description: 'v2 where nothing else is known: there Node 18 sees no limit'
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
        description: 'the most it may grow to; null where that cannot be told'
      },
      semiSpaceBytes: { ...nullable('number'), description: 'likewise of one semi-space' },
      newSpaceBytes: { ...nullable('number'), description: 'what two of them may commit' },
      flags: text,
      running: {
        type: 'boolean',
        description: 'this is what the target runs now, by its own word'
      },
      warnings: { ...array(text), description: 'sentences, worst first' }
    })
  ),
  description: 'by limit, then by version; before them what the target runs'
}

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
      description: 'one or more: track=rssBytes&track=scavenges'
    },
    thread: { ...text, default: 'main' },
    seconds: {
      type: 'integer',
      minimum: 1,
      maximum: 7 * 86_400,
      default: 600,
      description:
        'how long a time: up to 600 s in seconds, up to six hours in tens of them, up to a day ' +
          'in minutes, then in tens of minutes'
    },
    untilUnixMs: { type: 'number', minimum: 0, description: 'its end; now, where it is not said' },
    step: {
      type: 'integer',
      enum: stepsSeconds,
      description: 'seconds; a finer one than is kept for so long a time is not to be had'
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
            description: 'least of each step; absent where steps are seconds, and of counters'
          },
          max: { ...steps, description: 'most of each step; absent as min is' }
        },
        ['min', 'max']
      )
    }
  })

const deaths = { ...array(death), description: 'newest first' }

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

/** Problems that the API answers with. */
const problem = object({
  type: text,
  title: text,
  status: number,
  detail: { ...text, description: 'a sentence, for people' },
  code: { enum: Object.keys(problems), description: 'stable, for programs' }
})

/** Problem responses of every route. */
const refusals = Object.fromEntries(
  ['4xx', '5xx'].map(status => [
    status,
    { description: 'why not', content: { 'application/problem+json': { schema: problem } } }
  ])
)

const trimResult = object({
  target: text,
  predicted: object({
    asked: { type: 'boolean', description: 'malloc itself was asked; else bytes is an estimate' },
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
      description: 'a snapshot even where it could end the process'
    }
  },
  required: ['kind'],
  additionalProperties: false
}

const captures = { ...array(capture), description: 'newest first' }

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
      source: {
        ...object({
          kind: text,
          title: text,
          lacks: { ...text, description: 'what it says nothing of' },
          cannotTell: array(object({ diagnosis: text, text })),
          limited: {
            ...array(object({ diagnosis: nullable('string'), text })),
            description: 'what it tells with less certainty, and why; diagnosis null: all of it'
          },
          notes: {
            ...array(text),
            description: 'of the material: damaged lines, how a process died'
          }
        }),
        description:
          'of memwatch diagnose: what was judged, where that is no recording, and what cannot ' +
            'be told from it'
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
        description: 'how its processes ended, the newest first; empty for a recording'
      },
      ending: {
        ...ending,
        description:
          'how the command ended, where a signal ended it and no process of it had reported; ' +
            'else absent'
      }
    },
    ['source', 'ending']
  )
}

module.exports = {
  verdict,
  targets,
  targetsQuery,
  recordingQuery,
  planQuery,
  plan,
  seriesQuery,
  series,
  diagnoses,
  death,
  deaths,
  deathsQuery,
  deathWithMinutes,
  trimQuery,
  trimResult,
  captureQuery,
  capture,
  captures,
  capturesQuery,
  capturePartQuery,
  refusals,
  report
}
