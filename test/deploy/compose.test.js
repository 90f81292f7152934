'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { Ajv } = require('ajv')
const { parse } = require('yaml')
const { options: agentOptions } = require('../../agent/protocol/config')
const { options } = require('../../exporter/config')
const { program } = require('../../cli/memwatch')
const { describeWithTools } = require('../support/tools')

const ROOT = path.join(__dirname, '../..')
const read = file => fs.readFileSync(path.join(ROOT, file), 'utf8')
const compose = parse(read('compose.yaml'))
const services = Object.entries(compose.services)

/** Mounts of a service from this repository. @param {any} service */
const mountedFiles = ({ volumes = [] }) =>
  volumes.map(volume => volume.split(':')[0]).filter(source => source.startsWith('./'))

it('is valid by the Compose Specification, which refuses a misspelt word', () => {
  const { $schema, ...schema } = JSON.parse(read('test/deploy/schemas/compose-spec.json'))
  const accepts = new Ajv({ strict: false, validateFormats: false }).compile(schema)
  expect([accepts(compose), accepts.errors]).toEqual([true, null])
  expect(
    accepts({
      ...compose,
      services: { ...compose.services, app: { ...compose.services.app, memlimit: '512m' } }
    })
  ).toBe(false)
})

it('mounts only existing files, and volumes that it defines', () => {
  for (const [name, service] of services) {
    for (const file of mountedFiles(service)) {
      expect([name, file, fs.existsSync(path.join(ROOT, file))]).toEqual([name, file, true])
    }
    for (const volume of service.volumes?.filter(volume => !volume.startsWith('./')) ?? []) {
      expect(Object.keys(compose.volumes)).toContain(volume.split(':')[0])
    }
  }
})

it('uses only existing options and commands of memwatch', () => {
  const known = [...Object.values(options), ...Object.values(agentOptions)].map(({ env }) => env)
  for (const [, { environment = {} }] of services) {
    for (const name of Object.keys(environment).filter(name => name.startsWith('MEMWATCH_'))) {
      expect(known).toContain(name)
    }
  }
  const commands = program.commands.map(command => command.name())
  for (const name of ['agent', 'exporter']) {
    expect(commands).toContain(compose.services[name].command[0])
  }
})

it('connects app and exporter: they share socket, token and group', () => {
  const { app, exporter, agent } = compose.services
  const folder = agent.command[1]
  expect(app.environment).toMatchObject({
    MEMWATCH_SOCKET: `${folder}/exporter.sock`,
    MEMWATCH_TOKEN_FILE: exporter.environment.MEMWATCH_TOKEN_FILE
  })
  expect(app.environment.NODE_OPTIONS).toMatch(new RegExp(`^--require ${folder}/agent/index.js`))
  for (const { volumes } of [app, exporter, agent]) {
    expect(volumes.map(volume => volume.replace(/:ro$/, ''))).toContain(`memwatch:${folder}`)
  }
  expect(read('Dockerfile')).toContain(`USER ${app.group_add[0]}:${app.group_add[0]}`)
})

it('Prometheus scrapes the exporter and knows Alertmanager, by names of services and their ports', () => {
  const { scrape_configs: scrapes, alerting } = parse(read('deploy/compose/prometheus.yml'))
  const targets = [...scrapes, ...alerting.alertmanagers].flatMap(({ static_configs: all }) =>
    all.flatMap(({ targets }) => targets)
  )
  const { datasources } = parse(read('deploy/compose/grafana/datasources.yml'))
  for (const target of [...targets, new URL(datasources[0].url).host]) {
    const [name, port] = target.split(':')
    expect(compose.services[name].ports).toEqual([`127.0.0.1:${port}:${port}`])
  }
})

describeWithTools('its configuration', tools => {
  it('is accepted by Prometheus and Alertmanager', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-compose-'))
    try {
      fs.copyFileSync(
        path.join(ROOT, 'deploy/compose/prometheus.yml'),
        path.join(folder, 'prometheus.yml')
      )
      fs.mkdirSync(path.join(folder, 'alerts'))
      for (const file of ['memwatch.rules.yaml', 'memwatch.alerts.yaml']) {
        fs.copyFileSync(path.join(ROOT, 'alerts', file), path.join(folder, 'alerts', file))
      }
      const checked = spawnSync(
        tools.promtool,
        ['check', 'config', path.join(folder, 'prometheus.yml')],
        { encoding: 'utf8' }
      )
      expect([checked.status, checked.stdout]).toEqual([
        0,
        expect.stringContaining('2 rule files found')
      ])
      expect(
        spawnSync(tools.amtool, [
          'check-config',
          path.join(ROOT, 'deploy/compose/alertmanager.yml')
        ]).status
      ).toBe(0)
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  })
})
