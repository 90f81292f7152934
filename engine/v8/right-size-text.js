'use strict'

const { formatMebibytes, formatRatio } = require('../text/format')
const { CONTAINER_SHARE } = require('./fitting-sizes')
const { youngGenerationBytes } = require('./heap-sizing')

/** @typedef {import('./right-size').RightSize} RightSize */
/** @typedef {import('./right-size').Needs} Needs */
/** @typedef {import('./right-size').RightSizeRequest} RightSizeRequest */
/** @typedef {import('./right-size').Sizes} Sizes */

const WEEK_DAYS = 7

/**
 * Explains the origin of each size, and adds notes on the whole answer.
 * @param {RightSize} answer
 * @param {{ request: RightSizeRequest, needs?: Needs }} from needs: absent if the answer has no
 *   sizes
 * @returns {Pick<RightSize, 'reasons' | 'notes'>}
 */
function explainSizes (answer, { request, needs }) {
  const { sizes, days } = answer
  if (answer.state === 'leak') {
    return {
      reasons: {},
      notes: [
        `No size fixes a leak: ${request.leaks.join(' and ')} ` +
          `${request.leaks.length > 1 ? 'are' : 'is'} confirmed, and a larger container only ` +
          'fills later. Fix the leak first (memwatch fix, memwatch capture), then size the ' +
          'container from the history after the fix.'
      ]
    }
  }
  if (!sizes || !needs) {
    return {
      reasons: {},
      notes: [
        `${formatDays(days)} of history without readings of RSS and heap: no size can be computed.`
      ]
    }
  }
  return {
    reasons: explain(sizes, needs, days),
    notes: listNotes(answer, { request, needs, sizes })
  }
}

/**
 * @param {Sizes} sizes
 * @param {Needs} needs
 * @param {number} days
 * @returns {RightSize['reasons']}
 */
function explain (sizes, needs, days) {
  const over = `over ${formatDays(days)}`
  const young = youngGenerationBytes(sizes.semiSpaceBytes)
  const whole = needs.wholeRatio > 1
    ? `, times ${needs.wholeRatio.toFixed(2)} for the other processes of the container,`
    : ''
  return {
    request: sizes.requestBytes === sizes.limitBytes
      ? 'equal to the limit'
      : `p99 of the minute peaks ${over}: ${formatMebibytes(needs.requestPeakBytes)}, plus a tenth`,
    limit:
      `a full heap (${formatMebibytes(sizes.oldBytes)} old, ${formatMebibytes(young)} young) and ` +
      `${formatMebibytes(needs.besideBytes)} outside it${whole} take ` +
      `${formatRatio(CONTAINER_SHARE)} of the limit; highest minute ${over}: ` +
      `${formatMebibytes(needs.peakBytes)}`,
    oldGeneration: needs.isLiveKnown
      ? `live heap at most ${formatMebibytes(needs.liveHighestBytes)} ${over}, planned for ` +
        `${formatMebibytes(needs.liveBytes)}, and room for garbage`
      : `heap in use at most ${formatMebibytes(needs.liveHighestBytes)} ${over}; no major GC has ` +
        'run, so all of it may be live',
    semiSpace: sizes.unset?.semiSpaceBytes === sizes.semiSpaceBytes
      ? 'V8 chooses it by itself'
      : sizes.unset?.semiSpaceBytes
        ? `V8 would choose ${formatMebibytes(sizes.unset.semiSpaceBytes)} in this container`
        : 'enough for most request loads, at most a tenth of the container'
  }
}

/**
 * @param {RightSize} answer
 * @param {{ request: RightSizeRequest, needs: Needs, sizes: Sizes }} from
 * @returns {string[]}
 */
function listNotes ({ days, present }, { request: { deaths, process }, needs, sizes }) {
  const notes = []
  if (days < WEEK_DAYS) {
    notes.push(
      `${formatDays(days)} of history, less than a week: the margin over the highest day is ` +
        `${formatRatio(needs.marginRatio)}, and becomes smaller with each day.`
    )
  }
  if (deaths.length > 0) {
    const kills = deaths.filter(reason => reason === 'oom_kill').length
    const full = deaths.length - kills
    const what = [
      ...(kills > 0 ? [`${kills} by the kernel (the limit is not lowered)`] : []),
      ...(full > 0 ? [`${full} by a full heap (the heap is not lowered)`] : [])
    ]
    notes.push(`${deaths.length} ${deaths.length > 1 ? 'deaths' : 'death'} from memory in ` +
      `${formatDays(days)}: ${what.join(', ')}.`)
  }
  if (needs.wholeRatio > 1) {
    notes.push('Several processes share the container: they are counted together, and the flags ' +
      'apply to the heap of each.')
  }
  if (sizes.limitBytes < needs.peakBytes) {
    notes.push(
      `The highest minute, ${formatMebibytes(needs.peakBytes)}, was above the new limit. It ` +
        'contained garbage, which V8 frees earlier under the new heap limit. Apply limit and ' +
        'flags together.'
    )
  }
  const unset = sizes.unset?.oldBytes
  if (sizes.flags['--max-old-space-size'] !== undefined && unset && unset < needs.liveHighestBytes) {
    notes.push(
      `Without --max-old-space-size V8 would limit the old generation to ${formatMebibytes(unset)} ` +
        `in this container, less than the live heap of ${formatMebibytes(needs.liveHighestBytes)}: ` +
        'the app would run out of heap. Apply limit and flags together.'
    )
  }
  const { memoryLimitBytes: now } = present
  if (now !== null && now !== sizes.limitBytes) {
    notes.push(`The limit is ${formatMebibytes(now)} now: ` +
      `${formatMebibytes(Math.abs(now - sizes.limitBytes))} ` +
      `${now > sizes.limitBytes ? 'less' : 'more'} for each pod.`)
  }
  const onCommandLine = Object.keys(sizes.flags).filter(name =>
    process?.flags.execArgv.some(option => option.replaceAll('_', '-').startsWith(name)))
  if (onCommandLine.length > 0) {
    notes.push(`The command line of node sets ${onCommandLine.join(' and ')}, which overrides ` +
      'NODE_OPTIONS: change it there.')
  }
  return notes
}

/**
 * @param {number} days
 * @returns {string} 12 min, 3 h, 1.2 days, 9 days
 */
const formatDays = days =>
  days < 1
    ? 24 * days < 1 ? `${Math.round(1440 * days)} min` : `${Number((24 * days).toFixed(1))} h`
    : `${Number(days.toFixed(days < WEEK_DAYS ? 1 : 0))} ${days.toFixed(1) === '1.0' ? 'day' : 'days'}`

module.exports = { explainSizes, formatDays }
