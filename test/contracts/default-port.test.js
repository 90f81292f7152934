'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { DEFAULT_PORT } = require('../../exporter/config')

const ROOT = path.join(__dirname, '../..')
const textOf = file => fs.readFileSync(path.join(ROOT, file), 'utf8')

// These files cannot load JavaScript of memwatch, so they repeat the port.
it.each([
  ['Dockerfile', /MEMWATCH_LISTEN=0\.0\.0\.0:(\d+)|EXPOSE (\d+)/g, 2],
  ['README.md', /--listen 127\.0\.0\.1:(\d+)/g, 1],
  ['compose.yaml', /127\.0\.0\.1:(\d{5}):(\d{5})|localhost:(\d{5})/g, 3],
  ['deploy/compose/prometheus.yml', /exporter:(\d+)/g, 1],
  ['deploy/helm/memwatch/values.yaml', /^port: (\d+)$/gm, 1],
  ['deploy/image/healthcheck.js', /127\.0\.0\.1:(\d+)/g, 1],
  ['deploy/sidecar.yaml', /name: memwatch, containerPort: (\d+)|0\.0\.0\.0:(\d+)|io\/port: "(\d+)"/g, 3],
  ['docs/production.md', /--listen 127\.0\.0\.1:(\d+)/g, 2],
  ['docs/quick-start.md', /127\.0\.0\.1:(\d+)|localhost:(\d{5})/g, 4]
])('%s has the default port', (file, pattern, least) => {
  const found = [...textOf(file).matchAll(pattern)].flatMap(([, ...ports]) => ports.filter(Boolean))
  expect(found.length).toBeGreaterThanOrEqual(least)
  expect([...new Set(found)]).toEqual([String(DEFAULT_PORT)])
})

it('no runbook names another port on loopback', () => {
  const runbooks = execFileSync('git', ['ls-files', 'alerts/runbooks'], { cwd: ROOT, encoding: 'utf8' })
    .trim().split('\n')
  const found = runbooks.flatMap(file =>
    [...textOf(file).matchAll(/(?:127\.0\.0\.1|localhost):(\d+)/g)].map(([, port]) => port))
  expect(found.length).toBeGreaterThan(10)
  expect([...new Set(found)]).toEqual([String(DEFAULT_PORT)])
})

it('the default port differs from ports of other exporters, NodePorts and clients', () => {
  const taken = [[1, 1023], [9090, 9999], [30_000, 32_767], [32_768, 65_535]]
  expect(taken.filter(([from, to]) => DEFAULT_PORT >= from && DEFAULT_PORT <= to)).toEqual([])
})
