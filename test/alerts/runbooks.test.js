'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFile } = require('node:child_process')
const { promisify } = require('node:util')
const { parse } = require('yaml')
const { diagnoses } = require('../../engine/diagnoses')
const { startExporter, eventually } = require('../support/exporter')
const { hello, frame, line } = require('../support/frames')
const { tellRecording } = require('../support/recorded-agent')
const { describeWithTools } = require('../support/tools')
const { defined } = require('../support/defined')

const RUNBOOKS = path.join(__dirname, '../../alerts/runbooks')
const runbooks = fs
  .readdirSync(RUNBOOKS)
  .map(name => ({
    name: name.replace('.md', ''),
    text: fs.readFileSync(path.join(RUNBOOKS, name), 'utf8')
  }))
/** Address of the exporter in runbooks. */
const ADDRESS = '127.0.0.1:16369'
/** Keys of container fields that a runbook tells the reader to paste. */
const CONTAINER_KEYS = ['env', 'resources']

/**
 * @param {string} text
 * @param {string} heading
 * @returns {string}
 */
const part = (text, heading) => text.split(`## ${heading}\n`)[1].split('\n## ')[0]
/**
 * @param {string} text
 * @param {string} language
 * @returns {string[]}
 */
const blocks = (text, language) =>
  [...text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]+?)\`\`\``, 'g'))].map(
    ([, block]) => block
  )
const bash = (/** @type {string} */ script, ...args) => promisify(execFile)('bash', [...args, '-c', script], { timeout: 20_000 })

describe('runbooks', () => {
  it.each(runbooks.map(({ name, text }) => [name, text]))(
    '%s has valid shell commands, valid YAML and no dead links',
    async (_, text) => {
      for (const command of blocks(text, 'sh')) await bash(command, '-n')
      for (const yaml of blocks(text, 'yaml')) {
        for (const key of Object.keys(parse(yaml))) expect(CONTAINER_KEYS).toContain(key)
      }
      for (const [, file] of text.matchAll(/\]\(([^)#]+)\)/g)) {
        expect(fs.existsSync(path.join(RUNBOOKS, file))).toBe(true)
      }
    }
  )
})

describeWithTools('the confirming command', () => {
  /** @type {Awaited<ReturnType<typeof startExporter>>} */
  let it_
  beforeEach(async () => { it_ = await startExporter() })
  afterEach(() => it_.stop())

  const confirm = ({ text }) =>
    blocks(part(text, 'Confirm'), 'sh')[0].replaceAll(ADDRESS, `127.0.0.1:${it_.port}`)
  const byCurl = runbooks.filter(({ text }) =>
    blocks(part(text, 'Confirm'), 'sh')[0].startsWith('curl')
  )
  const ofDiagnosis = ({ name }) => diagnoses.find(({ runbook }) => runbook === name)

  it.each(byCurl.filter(ofDiagnosis).map(runbook => [runbook.name, runbook]))(
    'of %s prints the diagnosis if it is confirmed',
    async (_, runbook) => {
      const { id } = defined(ofDiagnosis(runbook))
      const connection = await tellRecording(it_, id)
      const { stdout } = await bash(confirm(runbook))
      expect(stdout).toContain(`"diagnosis": "${id}"`)
      connection.destroy()
    }
  )

  it.each(byCurl.filter(runbook => !ofDiagnosis(runbook)).map(runbook => [runbook.name, runbook]))(
    'of %s prints something',
    async (_, runbook) => {
      const connection = await tellRecording(it_, 'healthy-steady')
      const dying = await it_.connect()
      dying.write(
        [
          hello({ name: 'gone', pid: 1 }),
          frame(),
          { type: 'bye', sequence: 2, atUnixMs: 1, exitCode: 1 }
        ]
          .map(message => line(message) + '\n')
          .join('')
      )
      await eventually(
        () => it_.exporter.deaths,
        deaths => deaths.length === 1
      )
      const { stdout } = await bash(confirm(runbook), '-o', 'pipefail')
      expect(stdout.trim()).not.toBe('')
      expect(stdout).not.toContain('null\n')
      connection.destroy()
    }
  )

  it('is curl or kubectl', () => {
    for (const { text } of runbooks) {
      expect(blocks(part(text, 'Confirm'), 'sh')[0]).toMatch(/^(curl|kubectl) /)
    }
  })
})
