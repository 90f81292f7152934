'use strict'

/**
 * The tools that read the manifests of `deploy/` (Helm and others) and the workflows (actionlint),
 * built by Go at exact versions. They are outside the repository, in a folder for each version, so
 * that a machine builds them once. The first build takes minutes: most of it is Helm. `node
 * scripts/go-tools.js helm` builds only the named tools.
 */

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { toolsFolder } = require('./tools-folder')

const TOOLS = {
  actionlint: { package: 'github.com/rhysd/actionlint/cmd/actionlint', version: 'v1.7.12' },
  helm: { package: 'helm.sh/helm/v4/cmd/helm', version: 'v4.3.1' },
  kubeconform: { package: 'github.com/yannh/kubeconform/cmd/kubeconform', version: 'v0.8.0' },
  'kube-score': { package: 'github.com/zegl/kube-score/cmd/kube-score', version: 'v1.20.0' },
  kustomize: { package: 'sigs.k8s.io/kustomize/kustomize/v5', version: 'v5.7.1' }
}

const GO_MISSING =
  'actionlint, helm, kubeconform, kube-score and kustomize are not built. ' +
    'node scripts/setup-tools.js builds them where there is Go 1.26 and its module proxy. Tests that need them do not run ' +
      'without.'

/** Time limit for a module proxy that does not answer. */
const BUILD_TIMEOUT_MS = 900_000
/**
 * Disables inlining. The compiler then needs a quarter less CPU time for Helm (195 s instead of
 * 255), and the tools themselves take milliseconds either way.
 */
const COMPILER_FLAGS = 'all=-l'

/** @typedef {Record<keyof typeof TOOLS, string>} GoTools paths by name */

const names = /** @type {(keyof typeof TOOLS)[]} */ (Object.keys(TOOLS))

/**
 * @param {keyof typeof TOOLS} name
 * @returns {string} folder of the tool
 */
function folderOf (name) {
  return path.join(toolsFolder(), `${name}-${TOOLS[name].version}`)
}

/**
 * @param {keyof typeof TOOLS} name
 * @returns {string | null} path of the tool; null if it is not built
 */
function findGoTool (name) {
  const file = path.join(folderOf(name), name)
  return fs.existsSync(file) ? file : null
}

/** @returns {GoTools | null} null if one is missing */
function findGoTools () {
  const files = names.map(name => [name, findGoTool(name)])
  return files.every(([, file]) => file) ? Object.fromEntries(files) : null
}

/**
 * Builds the missing tools.
 * @param {(line: string) => void} say
 * @param {readonly (keyof typeof TOOLS)[]} [wanted]
 */
function buildGoTools (say, wanted = names) {
  for (const name of wanted) {
    if (findGoTool(name)) continue
    const folder = folderOf(name)
    const { package: of, version } = TOOLS[name]
    say(`$ go install ${of}@${version}`)
    const from = Date.now()
    // Builds into a temporary folder first, so that an interrupted build leaves no incomplete tool.
    const made = `${folder}.${process.pid}`
    const { status, error } = spawnSync(
      'go',
      ['install', '-trimpath', '-gcflags', COMPILER_FLAGS, '-ldflags', '-s -w', `${of}@${version}`],
      {
        stdio: ['ignore', 'ignore', 'inherit'],
        timeout: BUILD_TIMEOUT_MS,
        env: {
          ...process.env,
          PATH: `${process.env.PATH}${path.delimiter}/usr/local/go/bin`,
          GOBIN: made,
          GOFLAGS: '',
          GOTOOLCHAIN: 'local',
          CGO_ENABLED: '0'
        }
      }
    )
    if (status === 0) {
      fs.rmSync(folder, { recursive: true, force: true })
      fs.renameSync(made, folder)
      say(`${name} ${version}: ${Math.round((Date.now() - from) / 1000)} s`)
    } else {
      fs.rmSync(made, { recursive: true, force: true })
      say(`${name} cannot be built: ${error?.message ?? `status ${status}`}`)
    }
  }
}

if (require.main === module) {
  const given = process.argv.slice(2)
  buildGoTools(
    line => console.log(line),
    given.length > 0 ? names.filter(name => given.includes(name)) : names
  )
}

module.exports = { findGoTool, findGoTools, buildGoTools, GO_MISSING }
