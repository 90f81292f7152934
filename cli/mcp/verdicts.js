'use strict'

const { text } = require('@memwatch/engine/text/json-schema')
const { ToolError, argumentsOf, findTarget, nearest, ofTarget } = require('./define-tool')
const { runbookOf } = require('../text/runbook')

/** Upper bounds of the lists in a verdict if several verdicts share an answer. */
const most = {
  sites: 8, packages: 5, piles: 5, knownBugs: 5, openHandlesWhenFound: 5, ruledOut: 20, evidence: 10
}

/** @type {import('./define-tool').Tool} */
const verdicts = {
  name: 'verdicts',
  title: 'Findings of a process, with evidence and fix',
  description:
    'Returns the verdicts on one target: the headline, each finding, and one line for each check ' +
    'that found nothing. A finding has its state (how sure), severity (how urgent), evidence ' +
    'with units and limits, impact, suspects (lines of code that allocate), holders (references ' +
    'that keep the objects), known bugs of the versions in use, and fixes with the expected ' +
    'effect. With diagnosis, the tool returns only this check, in full, also with the causes ' +
    'that it ruled out.',
  input: argumentsOf({
    ...ofTarget,
    diagnosis: { ...text, description: 'id of one diagnosis, such as js-heap-leak' }
  }, ['target']),
  most,
  async answer (args, facts) {
    const judged = await findTarget(facts, args)
    const { target, thread, pid, node, headline, primary, verdicts } = judged
    const head = { target, thread, pid, node }
    if (args.diagnosis !== undefined) {
      const ids = verdicts.map((/** @type {any} */ { diagnosis }) => diagnosis)
      const verdict = verdicts[ids.indexOf(args.diagnosis)]
      if (!verdict) {
        throw new ToolError('no diagnosis has this id', 'call verdicts without diagnosis, or docs',
          { nearest: nearest(args.diagnosis, ids) })
      }
      const { ruledOut } = verdict
      return { ...head, verdict: { ...detail(verdict), ruledOut } }
    }
    const isFound = (/** @type {any} */ { state }) => state === 'suspected' || state === 'confirmed'
    return {
      ...head,
      headline,
      primary: primary?.diagnosis ?? null,
      findings: order(verdicts.filter(isFound), headline.diagnosis).map(detail),
      others: verdicts.filter((/** @type {any} */ verdict) => !isFound(verdict))
        .map((/** @type {any} */ { diagnosis, state, summary }) =>
          `${diagnosis}: ${state}: ${summary}`)
    }
  }
}

/**
 * Orders verdicts: the verdict of the headline comes first.
 * @param {any[]} found
 * @param {string | null} first
 */
const order = (found, first) =>
  found.toSorted((a, b) => Number(b.diagnosis === first) - Number(a.diagnosis === first))

/** @param {any} verdict verdict, in the form of the API */
function detail (verdict) {
  const { diagnosis, title, state, severity, opportunity, summary, secondsLeft, impact } = verdict
  const { evidence, suspects, captureError, holders, knownBugs, openHandles } = verdict
  const { mallocAddons, loadedAddons, fix, runbook } = verdict
  return {
    diagnosis,
    title,
    state,
    severity,
    ...opportunity && { opportunity },
    summary,
    ...secondsLeft !== null && { secondsLeft },
    ...impact && { impact },
    evidence,
    suspects: suspects && {
      captureId: suspects.captureId,
      kind: suspects.kind,
      of: suspects.suspects.of,
      sites: suspects.suspects.sites.map(describeSite),
      packages: suspects.suspects.packages
    },
    ...captureError && { captureError },
    holders: holders && {
      captureId: holders.captureId,
      refused: holders.refused,
      piles: holders.piles.map((/** @type {any} */ { text }) => text)
    },
    ...knownBugs?.length > 0 && {
      knownBugs: knownBugs.map((/** @type {any} */ { id, likely, text, workaround, thread }) =>
        ({ id, likely, text, workaround, thread }))
    },
    ...openHandles && { openHandlesWhenFound: openHandles },
    ...mallocAddons?.length > 0 && { mallocAddons },
    ...loadedAddons && { loadedAddons },
    fix,
    runbook: runbook && runbookOf(runbook)
  }
}

/** @param {any} site site of a list of suspects */
const describeSite = ({ text, function: name, file, line, package: owner, share }) =>
  ({ text, function: name, file, line, ...owner && { package: owner }, share })

module.exports = { verdicts, describeSite }
