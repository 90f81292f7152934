'use strict'

const { Command, Option } = require('commander')
const { patchOf, NoPatchError, FORMATS } = require('@memwatch/engine/fixes/patch')
const { withApiOptions, callList } = require('./api')
const { out, err } = require('./output')
const { UsageError } = require('./usage-error')

const command = withApiOptions(new Command('fix'))
  .description('Print the fix for the finding on a target, as a patch, Dockerfile lines or NODE_OPTIONS.')
  .argument('<target>', 'as memwatch_target_info and /api/v1/targets call it')
  .addOption(
    new Option(
      '--format <FORMAT>',
      'kubernetes: a patch for kubectl apply; dockerfile: lines; node-options: the value of ' +
        'NODE_OPTIONS'
    )
      .choices(FORMATS)
      .makeOptionMandatory()
  )
  .option(
    '--diagnosis <ID>',
    'for this one (default: the primary one, else the first that is suspected)'
  )
  .option(
    '--fix <N>',
    'which of its fixes, 1 being the best (default: the best that has this form)'
  )
  .option('--thread <THREAD>', 'main or worker-N', 'main')
  .option(
    '--workload <KIND/NAME>',
    'deployment/shop: what is patched (default: as the name of its pod tells)'
  )
  .option('--namespace <NAME>', 'of the workload (default: that of its pod)')
  .option('--container <NAME>', 'of the pod (default: as its agent says)')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The patch contains only the changes: apply it with kubectl apply --server-side. Read it first.

Ends with 0; 1 when nothing was found on the target, or its fix has no such form, as a change of
code; 2 when an option cannot be used, the exporter cannot be reached or knows no such target.

Examples:
  $ memwatch fix shop --format node-options
  $ memwatch fix shop --format dockerfile >> Dockerfile
  $ kubectl exec shop-5d4c7f9b8-x2k4q -c memwatch -- memwatch fix shop --format kubernetes |
      kubectl apply --server-side --field-manager=memwatch -f -
  $ memwatch fix shop --format kubernetes --workload statefulset/shop --container app --fix 2`
  )
  .action(async (target, given) => {
    process.exitCode = await printFix(target, given)
  })

/**
 * @param {string} name
 * @param {import('./api').ApiOptions & { format: typeof FORMATS[number], diagnosis?: string, fix?:
 *   string, thread: string, workload?: string, namespace?: string, container?: string }} given
 * @returns {Promise<number>} exit status
 */
async function printFix (name, given) {
  if (given.fix !== undefined && !/^[1-9]\d?$/.test(given.fix)) {
    throw new UsageError(`--fix: expected a number from 1 on, got ${JSON.stringify(given.fix)}`)
  }
  const query = new URLSearchParams({ target: name, thread: given.thread })
  const [target] = await callList(given, `targets?${query}`)
  const [judged] = await callList(given, `diagnoses?${query}`)
  if (!target || !judged) {
    const names = [...new Set((await callList(given, 'targets')).map(({ target }) => target))]
    throw new UsageError(
      `no such target: ${name} ${given.thread}; there are: ${names.join(', ') || 'none'}`
    )
  }
  try {
    const verdict = chooseVerdict(judged, given.diagnosis)
    const { text, note } = choosePatch(verdict, target, given)
    out.text(text)
    if (note) err.say(`memwatch fix: ${note}`)
    if (verdict.state === 'suspected') {
      err.say(`memwatch fix: ${verdict.diagnosis} is suspected, not confirmed`)
    }
    return 0
  } catch (error) {
    if (!(error instanceof NoPatchError)) throw error
    if (error.message.startsWith('--')) throw new UsageError(error.message)
    err.say(`memwatch fix: ${error.message}`)
    return 1
  }
}

/**
 * @param {{ target: string, primary: any, verdicts: any[] }} judged
 * @param {string | undefined} wanted
 * @throws {NoPatchError}
 */
function chooseVerdict ({ target, primary, verdicts }, wanted) {
  if (wanted === undefined) {
    const found =
      primary ?? verdicts.find(({ state, opportunity }) => state === 'suspected' && !opportunity)
    if (!found) throw new NoPatchError(`nothing was found on ${target}: there is nothing to fix`)
    return found
  }
  const verdict = verdicts.find(({ diagnosis }) => diagnosis === wanted)
  if (!verdict) {
    throw new UsageError(
      `--diagnosis: ${wanted} is none of ` +
        `${verdicts.map(({ diagnosis }) => diagnosis).join(', ') || 'those judged so far: none'}`
    )
  }
  if (verdict.fix.length === 0) {
    throw new NoPatchError(`${wanted} was not found on ${target}: ${verdict.summary}`)
  }
  return verdict
}

/**
 * @param {{ diagnosis: string, fix: any[] }} verdict
 * @param {any} target
 * @param {{ format: typeof FORMATS[number], fix?: string, workload?: string, namespace?: string,
 *   container?: string }} given
 * @returns {{ text: string, note?: string }} note: what it leaves out
 * @throws {NoPatchError} what keeps the best fix from being given so
 */
function choosePatch ({ diagnosis, fix: fixes }, target, { format, fix: wanted, ...where }) {
  if (wanted !== undefined) {
    const fix = fixes[Number(wanted) - 1]
    if (!fix) throw new UsageError(`--fix: ${diagnosis} has ${fixes.length}`)
    return { text: patchOf(fix, target, format, where), note: fix.change.note }
  }
  /** @type {NoPatchError | undefined} */
  let first
  for (const fix of fixes) {
    try {
      return { text: patchOf(fix, target, format, where), note: fix.change.note }
    } catch (error) {
      if (!(error instanceof NoPatchError)) throw error
      first ??= error
    }
  }
  throw first ?? new NoPatchError(`no fix is known for ${diagnosis}`)
}

module.exports = { command }
