'use strict'

/**
 * One line of `node --trace-gc`, as V8's Heap GCTracer::Print writes it. The format
 * depends on the version of Node.js. These forms were checked on the output of Node 18 to 26:
 *
 *   18 [PID:ISOLATE] 33 ms: Scavenge 5.3 (5.6) -> 5.2 (6.6) MB, 5.0 / 0.0 ms (average mu = …)
 *   allocation failure;
 *   20  two decimals in the pause, and Mark-Compact for Mark-sweep
 *   22  pooled: 0 MB, after the sizes; 25 and 26 pooled: 0.0 MB,
 */

const MIB = 2 ** 20
const LINE =
  /\[(\d+):((?:0x)?[\da-fA-F]+)\] +(\d+) ms: ((?:Incremental )?(?:Scavenge|Mark-sweep|Mark-Compact|Minor Mark-\w+))((?: \([a-z -]+\))*) ([\d.]+) \(([\d.]+)\) -> ([\d.]+) \(([\d.]+)\) MB,( pooled: ([\d.]+) MB,)? ([\d.]+) \/ [\d.]+ ms(?: +\(\+ ([\d.]+) ms in \d+ steps)?(.*)/
/** Parts of a GC line by which a damaged line is recognised. */
const TORN = /\] +\d+ ms: |(?:Scavenge|Mark-sweep|Mark-Compact) [\d.]+ \(/
/**
 * Lines of other flags: --trace-gc-nvp, --trace-gc-verbose, and the JSON of newer versions of
 * Node.js.
 */
const OTHER_TRACE = /\] +\d+ ms: pause=|GC: \{"pause":/

/**
 * @typedef {object} GcLine
 * @property {number} pid
 * @property {string} isolate address of the isolate
 * @property {number} atSeconds seconds since the isolate started
 * @property {'minor' | 'minor_mark_sweep' | 'major'} kind
 * @property {'ordinary' | 'external' | 'forced' | 'last_resort'} cause
 * @property {number} pauseSeconds
 * @property {number} stepsSeconds time of earlier marking steps on the main thread
 * @property {number} usedBeforeBytes
 * @property {number} usedAfterBytes bytes of all objects on the heap
 * @property {number} totalBeforeBytes
 * @property {number} totalAfterBytes memory of the heap
 * @property {boolean} filled true if the GC ran because the new space was full or nearly full, and
 *   not for memory outside the heap or on request
 * @property {'18' | '20' | '22 or 24' | '25 or 26'} node version of Node.js, recognised by the form
 *   of the line
 */

/**
 * @param {string} text
 * @returns {GcLine | undefined} undefined for any other line
 */
function parseGcLine (text) {
  if (!text.includes(' ms: ')) return undefined
  const found = LINE.exec(text)
  if (!found) return undefined
  const [
    ,
    pid,
    isolate,
    atMs,
    name,
    ,
    usedBefore,
    totalBefore,
    usedAfter,
    totalAfter,
    ,
    pooled,
    pauseMs,
    stepsMs,
    rest
  ] = found
  const kind = name.endsWith('Scavenge')
    ? 'minor'
    : name.startsWith('Minor')
      ? 'minor_mark_sweep'
      : 'major'
  const cause = causeOf(rest)
  // A number like 1.2.3 shows that the line is damaged.
  if (
    [usedBefore, totalBefore, usedAfter, totalAfter, pauseMs, stepsMs ?? '0'].some(
      number => !Number.isFinite(Number(number))
    )
  ) { return undefined }
  return {
    pid: Number(pid),
    isolate,
    atSeconds: Number(atMs) / 1000,
    kind,
    cause,
    pauseSeconds: Number(pauseMs) / 1000,
    stepsSeconds: Number(stepsMs ?? 0) / 1000,
    usedBeforeBytes: Number(usedBefore) * MIB,
    totalBeforeBytes: Number(totalBefore) * MIB,
    usedAfterBytes: Number(usedAfter) * MIB,
    totalAfterBytes: Number(totalAfter) * MIB,
    filled: kind === 'minor' && cause === 'ordinary',
    node:
      pooled !== undefined
        ? pooled.includes('.')
          ? '25 or 26'
          : '22 or 24'
        : /\.\d\d/.test(pauseMs)
          ? '20'
          : '18'
  }
}

/**
 * Converts V8's GarbageCollectionReason to one of the causes that the agent derives from the flags
 * of a GC.
 * @param {string} reason
 * @returns {GcLine['cause']}
 */
function causeOf (reason) {
  if (/external/.test(reason)) return 'external'
  if (/last resort/.test(reason)) return 'last_resort'
  return /testing|heap profiler|debugger|low memory notification|memory pressure/.test(reason)
    ? 'forced'
    : 'ordinary'
}

/**
 * @param {string} text
 * @returns {boolean} true for a damaged line of the log
 */
const isTorn = text => TORN.test(text)
/**
 * @param {string} text
 * @returns {boolean}
 */
const isOtherTrace = text => OTHER_TRACE.test(text)

module.exports = { parseGcLine, isTorn, isOtherTrace }
