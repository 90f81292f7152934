'use strict'

/**
 * `npm run bench:sources -- FOLDER` judges GC logs without other data. It judges logs of lab apps
 * from test/sources/make.js, with and without the limit of their container, and writes
 * docs/sources-accuracy.md.
 */

const fs = require('node:fs')
const path = require('node:path')
const { apps } = require('../lab')
const { findCase } = require('../engine/verdicts/case')
const { openAll, judgeSource } = require('../cli/sources')
const { cannotTell } = require('../cli/sources/support')
const { traceGc } = require('../cli/sources/trace-gc')

const NAME = /^trace-gc-(\d+)-(.+?)(-fixed|-repaired)?\.log(\.gz)?$/

/**
 * Findings at the end of a log, and all earlier ones.
 * @param {string} file
 * @param {object} given
 */
async function judged (file, given) {
  const ever = new Set()
  const { inputs } = await openAll([file])
  const { targets } = await judgeSource(traceGc, inputs, given, {
    onVerdict: (_, { diagnosis, state }) => {
      if (state === 'suspected' || state === 'confirmed') ever.add(`${diagnosis} ${state}`)
    }
  })
  const end = targets.flatMap(target => findCase(target).verdicts)
    .filter(({ state }) => state === 'suspected' || state === 'confirmed')
    .map(({ diagnosis, state }) => `${diagnosis} ${state}`)
  return {
    end: [...new Set(end)],
    passing: [...ever].filter(text => !end.some(other => other.startsWith(text.split(' ')[0])))
  }
}

/** @param {{ end: string[], passing: string[] }} found */
const cell = ({ end, passing }) =>
  `${end.join(', ') || 'nothing'}${passing.length > 0
    ? ' (earlier: ' +
    `${passing.join(', ')})`
      : ''}`

/** @param {string[]} args */
async function main ([folder]) {
  if (!folder) throw new Error('name the folder of the logs')
  const beyond = cannotTell(traceGc)
  const rows = []
  for (const name of fs.readdirSync(folder).filter(name => NAME.test(name)).sort()) {
    const [, major, id, form] = NAME.exec(name) ?? []
    const app = apps.find(app => app.id === id)
    if (!app) continue
    const { diagnosis } = app
    const expected =
      !diagnosis || form
        ? 'nothing'
        : beyond.has(diagnosis)
          ? `nothing: a log cannot show ${diagnosis}`
          : diagnosis
    const file = path.join(folder, name)
    const row = {
      expected,
      alone: await judged(file, {}),
      told: await judged(file, { containerLimitBytes: app.memoryLimitBytes, nodeVersion: major })
    }
    rows.push({
      ...row,
      text: `| ${major} | \`${id}\`${form ? `, ${form.slice(1)}` : ''} | ${expected} | ` +
        `${cell(row.alone)} | ${cell(row.told)} |`
    })
  }
  const ill = rows.filter(({ expected }) => !expected.startsWith('nothing'))
  const well = rows.filter(({ expected }) => expected.startsWith('nothing'))
  const share = (of, test) => `${of.filter(test).length} of ${of.length}`
  fs.writeFileSync(
    path.join(__dirname, '../docs/sources-accuracy.md'),
    `# Findings from GC logs alone

<!-- Written by npm run bench:sources; do not edit. -->
\`memwatch diagnose\` evaluated \`--trace-gc\` logs of lab apps in memory cgroups, without and with \`--memory\`. Each log covers one or two minutes.
A log lacks the container's limit, so only \`--memory\` turns many suspected findings into confirmed ones. [Sources](sources.md) lists the checks that a log cannot support.

| | the log alone | with the limit |
|---|---|---|
| apps with a problem that a log can show: found | ${share(ill, ({ expected, alone }) => alone.end.some(text => text.startsWith(expected)))} | ${share(ill, ({ expected, told }) => told.end.some(text => text.startsWith(expected)))} |
| of these, confirmed | ${share(ill, ({ expected, alone }) => alone.end.includes(`${expected} confirmed`))} | ${share(ill, ({ expected, told }) => told.end.includes(`${expected} confirmed`))} |
| all other runs: no finding at the end | ${share(well, ({ alone }) => alone.end.length === 0)} | ${share(well, ({ told }) => told.end.length === 0)} |

${share(well, ({ alone, told }) => ![...alone.end, ...alone.passing, ...told.end, ...told.passing].some(text => text.endsWith('confirmed')))} other runs never had a confirmed finding.

| Node | app | expected finding | the log alone | with the limit of its container |
|---|---|---|---|---|
${rows.map(({ text }) => text).join('\n')}
`
  )
}

main(process.argv.slice(2))
