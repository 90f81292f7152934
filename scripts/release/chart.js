'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { parse, stringify } = require('yaml')
const { CHART } = require('../generate-deploy')
const { IMAGE } = require('../packages')

/**
 * @param {import('./changelog').Version} release
 * @returns {Record<string, string>} annotations of Artifact Hub that follow from the release
 */
const releaseAnnotations = ({ name, changes }) => ({
  'artifacthub.io/changes': stringify(
    // Artifact Hub uses the kinds of Keep a Changelog, in lower case.
    changes.map(({ kind, text }) => ({ kind: kind.toLowerCase(), description: text }))
  ),
  'artifacthub.io/images': stringify([{ name: 'memwatch', image: `${IMAGE}:${name}` }]),
  'artifacthub.io/containsSecurityUpdates': String(changes.some(({ kind }) => kind === 'Security'))
})

/**
 * Packages a copy of the chart, with the annotations of the release.
 * @param {string} helm path of Helm
 * @param {import('./changelog').Version} release
 * @param {string} folder folder for the archive
 * @throws {Error} with the message of Helm
 */
function packageChart (helm, release, folder) {
  const parent = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-chart-'))
  try {
    // Helm requires the folder to have the chart's name.
    const copy = path.join(parent, 'memwatch')
    fs.cpSync(CHART, copy, { recursive: true })
    const file = path.join(copy, 'Chart.yaml')
    const { annotations, ...rest } = parse(fs.readFileSync(file, 'utf8'))
    fs.writeFileSync(
      file,
      stringify({ ...rest, annotations: { ...annotations, ...releaseAnnotations(release) } })
    )
    const { status, stderr, error } = spawnSync(helm, ['package', copy, '--destination', folder], {
      encoding: 'utf8'
    })
    if (status !== 0) throw new Error(error?.message ?? stderr)
  } finally {
    fs.rmSync(parent, { recursive: true, force: true })
  }
}

module.exports = { packageChart, releaseAnnotations }
