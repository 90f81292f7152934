'use strict'

/**
 * Arguments of `memwatch simulate` for a lab app fixed in its code, or by a printed fix.
 * @param {import('../lab').LabApp} app
 * @param {import('../engine/diagnoses/define-diagnosis').Change} change of the fix
 * @returns {{ args: string[], env: Record<string, string> }}
 */
function repairOf (app, { flag, env = {}, kubernetes = '' }) {
  if (app.fixedBy === 'code') return { args: ['--fixed'], env: {} }
  if (app.fixedBy === 'none') return { args: [], env: {} }
  const [, megabytes] = /memory: "?(\d+)Mi/.exec(kubernetes) ?? []
  return {
    args: [
      ...(megabytes ? ['--memory', `${megabytes}Mi`] : []),
      ...(flag ? flag.split(' ').map(option => `--node-option=${option}`) : [])
    ],
    env: flag ? {} : env
  }
}

module.exports = { repairOf }
