'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { parse } = require('yaml')
const { describeWithTools } = require('../support/tools')

const ALERTS = path.join(__dirname, '../../alerts')
const rules = parse(fs.readFileSync(path.join(ALERTS, 'memwatch.alerts.yaml'), 'utf8')).groups.flatMap(({ rules }) => rules)
const names = rules.map(({ alert }) => alert)
const inFolder = (folder, ending) => fs.readdirSync(path.join(ALERTS, folder)).map(name => name.replace(ending, ''))

const HEADINGS = ['Meaning', 'Impact', 'Confirm', 'Fix now', 'Fix for good', 'How to tell it worked', 'False positives and look-alikes']

/** @param {string} file @param {string[]} args */
function expectSuccess (file, args) {
  const { status, stdout, stderr } = spawnSync(file, args, { cwd: ALERTS, encoding: 'utf8' })
  expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: expect.any(String) })
}

describe('alerts', () => {
  it('each has a runbook and a test of its own name, and nothing is left over', () => {
    expect(inFolder('runbooks', '.md').sort()).toEqual([...names].sort())
    expect(inFolder('tests', '.test.yaml').sort()).toEqual([...names].sort())
  })
  it.each(rules.map(rule => [rule.alert, rule]))('%s says what it is, how bad, and what to do', (alert, rule) => {
    expect(rule.labels.severity).toMatch(/^(critical|warning|info)$/)
    expect(Object.keys(rule.annotations).sort()).toEqual(['description', 'fix', 'runbook_url', 'summary'])
    expect(rule.annotations.summary).not.toContain('{{')
    expect(rule.annotations.runbook_url.endsWith(`/${alert}.md`)).toBe(true)
    expect(parseInt(rule.for)).toBeGreaterThanOrEqual(60)
    expect(parseInt(rule.keep_firing_for)).toBeGreaterThan(0)
  })
  it.each(names)('the runbook of %s has all its parts, and one command to confirm', name => {
    const text = fs.readFileSync(path.join(ALERTS, 'runbooks', `${name}.md`), 'utf8')
    expect([...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)).toEqual(HEADINGS)
    const confirm = text.split('## Confirm')[1].split('\n## ')[0]
    expect([...confirm.matchAll(/```sh\n(.+)\n```/g)]).toHaveLength(1)
  })
})

describeWithTools('alerts under promtool and amtool', ({ promtool, amtool }) => {
  it('the rules are sound', () => expectSuccess(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', 'memwatch.alerts.yaml']))
  it.each(names)('%s fires, stays silent and resolves as its test says', name => expectSuccess(promtool, ['test', 'rules', `tests/${name}.test.yaml`]))
  it('the Alertmanager example is sound', () => expectSuccess(amtool, ['check-config', 'alertmanager.example.yaml']))
  it.each([
    ['critical', 'pager'],
    ['warning', 'tickets'],
    ['info', 'nobody']
  ])('%s goes to %s', (severity, receiver) => {
    expectSuccess(amtool, ['config', 'routes', 'test', '--config.file=alertmanager.example.yaml', `--verify.receivers=${receiver}`, `severity=${severity}`, 'alertname=MemwatchJsHeapLeak'])
  })
})
