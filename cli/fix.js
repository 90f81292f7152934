'use strict'

const { Command, Option } = require('commander')
const { patchOf, NoPatchError, FORMATS } = require('@memwatch/engine/fixes/patch')
const { withApiOptions, callList } = require('./program/api')
const { out, err } = require('./program/output')
const { UsageError } = require('./program/usage-error')

const command = withApiOptions(new Command('fix'))
  .description('Print the fix for the finding on a target, as a patch, Dockerfile lines or NODE_OPTIONS.')
  .argument('<target>', 'name of the target, as memwatch top lists it')
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
    'finding to fix (default: the primary finding, or the first suspected one)'
  )
  .option(
    '--fix <N>',
    'number of the fix; 1 is the best (default: the best fix in this format)'
  )
  .option('--thread <THREAD>', 'main or worker-N', 'main')
  .option(
    '--workload <KIND/NAME>',
    'workload to patch, such as deployment/shop (default: derived from the name of the pod)'
  )
  .option('--namespace <NAME>', 'namespace of the workload (default: namespace of the pod)')
  .option('--container <NAME>', 'container of the pod (default: the container that the agent ' +
    'reports)')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The patch contains only the changes. Read it, then apply it with kubectl apply --server-side.

Exit status: 0; 1 when the target has no finding, or the fix does not exist in this format (such as
a change of code); 2 when an option is invalid, the exporter cannot be reached, or the target does
not exist.

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
 * @param {import('./program/api').ApiOptions & { format: typeof FORMATS[number], diagnosis?: string, fix?:
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
      `unknown target: ${name} ${given.thread}; known targets: ${names.join(', ') || 'none'}`
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
    if (!found) throw new NoPatchError(`${target} has no finding, and needs no fix`)
    return found
  }
  const verdict = verdicts.find(({ diagnosis }) => diagnosis === wanted)
  if (!verdict) {
    throw new UsageError(
      `--diagnosis: expected one of ${verdicts.map(({ diagnosis }) => diagnosis).join(', ') ||
        'a diagnosis, but none has been evaluated yet'}, got ${JSON.stringify(wanted)}`
    )
  }
  if (verdict.fix.length === 0) {
    throw new NoPatchError(`${target} has no finding ${wanted}: ${verdict.summary}`)
  }
  return verdict
}

/**
 * @param {{ diagnosis: string, fix: any[] }} verdict
 * @param {any} target
 * @param {{ format: typeof FORMATS[number], fix?: string, workload?: string, namespace?: string,
 *   container?: string }} given
 * @returns {{ text: string, note?: string }} note: options that the patch leaves
 *   out, and the reason
 * @throws {NoPatchError} with the reason why the best fix has no patch in this format
 */
function choosePatch ({ diagnosis, fix: fixes }, target, { format, fix: wanted, ...where }) {
  if (wanted !== undefined) {
    const fix = fixes[Number(wanted) - 1]
    if (!fix) {
      throw new UsageError(
        `--fix: expected a number up to ${fixes.length}, the fixes of ${diagnosis}, got ${wanted}`
      )
    }
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
