'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')

/**
 * Folder of the builds, outside the repository: a build takes minutes, and can be used by every
 * checkout.
 */
const CACHE = path.join(
  process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'),
  'memwatch-bench'
)
const PATH = `${process.env.PATH}${path.delimiter}/usr/local/go/bin`
/** Time limit of a build, for a module proxy that does not answer. */
const BUILD_TIMEOUT_MS = 900_000

/**
 * @param {string} command
 * @param {string[]} args
 * @param {string} cwd
 */
function run (command, args, cwd) {
  const { status, error } = spawnSync(command, args, {
    cwd,
    stdio: 'inherit',
    timeout: BUILD_TIMEOUT_MS,
    env: { ...process.env, PATH, GOTOOLCHAIN: 'local', CGO_ENABLED: '0', GOFLAGS: '-mod=mod' }
  })
  return status === 0 && !error
}

/**
 * Builds a program of a Go module with `replace` directives, which `go install` refuses, as a tool
 * of a new module.
 * @param {string} name
 * @param {{ module: string, version: string, package: string, flags?: string[] }} what
 * @returns {string | undefined} file; undefined if the build is impossible
 */
function build (name, { module, version, package: program, flags = [] }) {
  const file = path.join(CACHE, `${name}-${version}`)
  if (fs.existsSync(file)) return file
  const folder = path.join(CACHE, `${name}.module`)
  fs.mkdirSync(folder, { recursive: true })
  fs.writeFileSync(
    path.join(folder, 'go.mod'),
    `module memwatch.local/${name}\n\ngo 1.26.0\n\ntool ${program}\n\nrequire ${module} ` +
      `${version}\n`
  )
  console.log(`building ${name} ${version} …`)
  return run(
    'go',
    ['build', '-trimpath', '-ldflags', '-s -w', ...flags, '-o', file, program],
    folder
  )
    ? file
    : undefined
}

/** Prometheus 3, without its page and service discovery. */
const buildPrometheus = () =>
  build('prometheus', {
    module: 'github.com/prometheus/prometheus',
    version: 'v0.315.0',
    package: 'github.com/prometheus/prometheus/cmd/prometheus',
    flags: ['-tags', 'remove_all_sd']
  })

/** The OpenTelemetry Collector with a few parts. */
function buildCollector () {
  const file = path.join(CACHE, 'otelcol-0.155.0')
  if (fs.existsSync(file)) return file
  const builder = build('builder', {
    module: 'go.opentelemetry.io/collector/cmd/builder',
    version: 'v0.155.0',
    package: 'go.opentelemetry.io/collector/cmd/builder'
  })
  if (!builder) return undefined
  const folder = path.join(CACHE, 'otelcol.module')
  fs.mkdirSync(folder, { recursive: true })
  fs.copyFileSync(path.join(__dirname, 'collector.yaml'), path.join(folder, 'collector.yaml'))
  if (!run(builder, ['--config', 'collector.yaml'], folder)) return undefined
  fs.copyFileSync(path.join(folder, 'out/otelcol-memwatch'), file)
  return file
}

module.exports = { buildPrometheus, buildCollector }
