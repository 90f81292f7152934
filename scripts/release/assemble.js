'use strict'

/**
 * Makes every file of a release, without a network: `npm run release:dry-run`.
 *
 *   node scripts/release/assemble.js --tag v1.2.3 --out dist
 *
 * dist/assets/ holds the packages, the chart, alert rules, dashboards for grafana.com, the kubectl
 * plugin and SHA256SUMS; dist/notes.md the release notes. Without --tag the version is that of the
 * packages, and unreleased changes are allowed; without --out the folder is a temporary one.
 * Without Helm the chart is SKIPPED; with --tag that is an error.
 */

const crypto = require('node:crypto')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { parseArgs } = require('node:util')
const { ARCHIVE, krewArchive, krewManifest } = require('../contrib/krew')
const { dashboards } = require('../dashboards')
const { findGoTool } = require('../go-tools')
const { CHARTS, IMAGE, REGISTRY, version } = require('../packages')
const { findVersion } = require('./changelog')
const { packageChart } = require('./chart')
const { forGrafanaCom } = require('./grafana-com')
const { findVersionProblems } = require('./versions')

const ROOT = path.join(__dirname, '../..')
const RULES = ['memwatch.alerts.yaml', 'memwatch.rules.yaml', 'prom-client.rules.yaml']
const CHECKSUMS = 'SHA256SUMS'

/** @param {string} file below the root */
const read = file => fs.readFileSync(path.join(ROOT, file), 'utf8')

/** @param {string} folder */
function packPackages (folder) {
  execFileSync(
    'npm',
    ['pack', '--workspaces', '--ignore-scripts', '--silent', '--pack-destination', folder],
    { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] }
  )
}

/**
 * @param {string} folder
 * @returns {string} one line per file, as sha256sum prints and checks it
 */
const checksums = folder =>
  fs.readdirSync(folder).filter(name => name !== CHECKSUMS).sort().map(name => {
    const content = fs.readFileSync(path.join(folder, name))
    return `${crypto.createHash('sha256').update(content).digest('hex')}  ${name}\n`
  }).join('')

/**
 * @param {string} out folder, created if it does not exist
 * @param {{ tag?: string, helm: string | null }} options helm: null leaves the chart out
 * @returns {string} folder of the assets
 * @throws {Error} if the version cannot be released
 */
function assembleRelease (out, { tag, helm }) {
  const problems = findVersionProblems(tag)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  const release = findVersion(read('CHANGELOG.md'), version)
  const assets = path.join(path.resolve(out), 'assets')
  fs.mkdirSync(assets, { recursive: true })
  packPackages(assets)
  if (helm) packageChart(helm, release, assets)
  for (const name of RULES) fs.copyFileSync(path.join(ROOT, 'alerts', name), path.join(assets, name))
  for (const [name, make] of Object.entries(dashboards)) {
    fs.writeFileSync(
      path.join(assets, `grafana-${name}.json`),
      JSON.stringify(forGrafanaCom(make()), null, 2) + '\n'
    )
  }
  fs.writeFileSync(path.join(assets, ARCHIVE), krewArchive())
  fs.writeFileSync(path.join(assets, 'krew-memwatch.yaml'), krewManifest())
  fs.writeFileSync(path.join(assets, CHECKSUMS), checksums(assets))
  fs.writeFileSync(path.join(out, 'notes.md'), release.text + '\n')
  return assets
}

/** @returns {Record<string, string>} names for the other jobs of the workflow */
const outputs = () => ({
  version,
  prerelease: String(version.includes('-')),
  registry: REGISTRY.split('/')[0],
  image: IMAGE,
  charts: CHARTS,
  'node-image': /^ARG NODE_IMAGE=(.+)$/m.exec(read('Dockerfile'))?.[1] ?? ''
})

function main () {
  const { tag, out = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-release-')) } = parseArgs({
    options: { tag: { type: 'string' }, out: { type: 'string' } }
  }).values
  const helm = findGoTool('helm')
  if (!helm) {
    const missing = 'the chart: helm is not built; node scripts/go-tools.js helm builds it'
    if (tag) throw new Error(missing)
    console.log(`SKIPPED: ${missing}`)
  }
  const assets = assembleRelease(out, { tag, helm })
  process.stdout.write(fs.readFileSync(path.join(assets, CHECKSUMS), 'utf8'))
  console.log(`memwatch ${version}: ${out}`)
  const { GITHUB_OUTPUT } = process.env
  if (GITHUB_OUTPUT) {
    const lines = Object.entries(outputs()).map(([name, value]) => `${name}=${value}\n`)
    fs.appendFileSync(GITHUB_OUTPUT, lines.join(''))
  }
}

if (require.main === module) {
  try {
    main()
  } catch (error) {
    console.error(/** @type {Error} */ (error).message)
    process.exitCode = 1
  }
}

module.exports = { assembleRelease, outputs }
