'use strict'

const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { parseAllDocuments } = require('yaml')
const { CHART } = require('../../scripts/generate-deploy')

/** @typedef {import('../../scripts/go-tools').GoTools} GoTools */

const SCHEMAS = [
  '{{ .NormalizedKubernetesVersion }}/{{ .ResourceKind }}.json',
  '{{ .Group }}/{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json'
].map(name => path.join(__dirname, 'schemas', name))

/**
 * @param {string} file
 * @param {string[]} args
 * @param {string} [input]
 */
function run (file, args, input) {
  return spawnSync(file, args, { encoding: 'utf8', input, maxBuffer: 64 * 2 ** 20 })
}

/**
 * @param {GoTools} tools
 * @param {object} values
 * @param {{ kubernetes?: string, files?: string[], show?: string[] }} [options]
 * @returns {string} manifests
 * @throws {Error} error of Helm
 */
function chart ({ helm }, values, { kubernetes = '1.36', files = [], show = [] } = {}) {
  const args = [
    'template',
    'memwatch',
    CHART,
    '--namespace',
    'memwatch',
    '--kube-version',
    kubernetes,
    ...files.flatMap(file => ['--values', file]),
    '--values',
    '-',
    ...show.flatMap(name => ['--show-only', `templates/${name}.yaml`])
  ]
  const { status, stdout, stderr } = run(helm, args, JSON.stringify(values))
  if (status !== 0) throw new Error(stderr)
  return stdout
}

/**
 * @param {GoTools} tools
 * @param {string} folder
 * @returns {string} manifests
 * @throws {Error} error of kustomize
 */
function kustomize ({ kustomize }, folder) {
  const { status, stdout, stderr } = run(kustomize, ['build', folder])
  if (status !== 0) throw new Error(stderr)
  return stdout
}

/**
 * @param {GoTools} tools
 * @param {string} kubernetes version, such as 1.36
 * @param {string} manifests
 * @returns {string[]} mistakes in the manifests; a kind without a schema is a mistake
 */
function kubeconform ({ kubeconform }, kubernetes, manifests) {
  const { stdout, stderr } = run(
    kubeconform,
    [
      '-strict',
      '-output',
      'json',
      '-summary',
      '-kubernetes-version',
      `${kubernetes}.0`,
      ...SCHEMAS.flatMap(at => ['-schema-location', at])
    ],
    manifests
  )
  const { resources = [], summary } = JSON.parse(
    stdout || JSON.stringify({ resources: [{ msg: stderr }] })
  )
  const wrong = resources.map(({ kind, name, msg }) => `${kind} ${name}: ${msg}`)
  return summary && summary.valid + wrong.length === 0 ? ['nothing was read'] : wrong
}

/**
 * @param {GoTools} tools
 * @param {string} manifests
 * @param {string[]} ignored ids of ignored tests
 * @returns {string[]} its critical findings and warnings
 */
function kubeScore (tools, manifests, ignored) {
  const { stdout, stderr, status } = run(
    tools['kube-score'],
    ['score', '-', '--output-format', 'json', ...ignored.flatMap(id => ['--ignore-test', id])],
    manifests
  )
  if (stdout === '' || stdout.trim() === 'null') {
    throw new Error(`nothing was scored: ${status} ${stderr}`)
  }
  return JSON.parse(stdout).flatMap(({ object_name: object, checks }) =>
    checks
      .filter(({ skipped, grade }) => !skipped && grade < 7)
      .flatMap(({ check, comments }) =>
        (comments ?? [{}]).map(
          ({ path, summary = '' }) => `${object} ${path ?? ''}: ${check.id}: ${summary}`
        )
      )
  )
}

/**
 * @param {string} manifests
 * @returns {any[]}
 */
const objects = manifests =>
  parseAllDocuments(manifests)
    .map(document => document.toJS())
    .filter(Boolean)

module.exports = { chart, kustomize, kubeconform, kubeScore, objects, CHART }
