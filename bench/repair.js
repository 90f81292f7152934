'use strict'

/**
 * Arguments of `memwatch simulate` for a lab app fixed in its code, or by a printed fix.
 * @param {import('../lab').LabApp} app
 * @param {import('../engine/diagnoses/define-diagnosis').Change} change of the fix
 * @returns {{ args: string[], env: Record<string, string> }}
 */
function repairOf (app, { flag, env = {}, memoryLimitBytes, cpuLimitCores, kubernetes = '' }) {
  if (app.fixedBy === 'code') return { args: ['--fixed'], env: {} }
  if (app.fixedBy === 'none') return { args: [], env: {} }
  // The API adds the manifest to the number.
  const megabytes = memoryLimitBytes === undefined
    ? /memory: "?(\d+)Mi/.exec(kubernetes)?.[1]
    : memoryLimitBytes / 2 ** 20
  return {
    args: [
      ...(megabytes ? ['--memory', `${megabytes}Mi`] : []),
      ...(cpuLimitCores ? ['--cpus', String(cpuLimitCores)] : []),
      ...(flag ? flag.split(' ').map(option => `--node-option=${option}`) : [])
    ],
    env: flag ? {} : env
  }
}

module.exports = { repairOf }
