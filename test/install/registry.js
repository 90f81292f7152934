'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { freePort } = require('../support/free-port')
const { fetchNode } = require('../../scripts/fetch-node')
const { fetchPackage } = require('../../scripts/fetch-package')
const { SCOPE, folders } = require('../../scripts/packages')

const ROOT = path.join(__dirname, '../..')
/**
 * Version of verdaccio. It is no devDependency: it needs Node.js 22, has 320 packages (65 MB), and
 * only this test uses it. It depends on node-fetch by the tag cjs, which some mirrors of npm's
 * registry lack.
 */
const VERDACCIO = '6.10.4'
const OVERRIDES = { 'node-fetch': '2.7.0' }
const NODE_VERSION = '24.21.0'

/**
 * Starts a registry on the loopback interface. It serves the packages of this work tree and no
 * others of their scope, and forwards all other requests to npm's configured registry.
 * @param {string} folder empty
 * @returns {Promise<{ url: string, token: string, stop: () => Promise<void> }>}
 */
async function startRegistry (folder) {
  const uplink = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  const config = path.join(folder, 'config.yaml')
  // The file may be JSON, because JSON is valid YAML.
  fs.writeFileSync(config, JSON.stringify({
    storage: path.join(folder, 'storage'),
    auth: { htpasswd: { file: path.join(folder, 'htpasswd') } },
    uplinks: { configured: { url: uplink, maxage: '1d' } },
    packages: {
      [`${SCOPE}/*`]: { access: '$all', publish: '$authenticated' },
      '**': { access: '$all', proxy: 'configured' }
    },
    log: { type: 'stdout', format: 'json', level: 'http' },
    web: { enable: false },
    max_body_size: '20mb'
  }))
  const url = `http://127.0.0.1:${await freePort()}`
  const child = spawn(
    fetchNode(NODE_VERSION),
    [
      fetchPackage('verdaccio', VERDACCIO, 'bin/verdaccio', { overrides: OVERRIDES }),
      '--config', config,
      '--listen', url.slice('http://'.length)
    ],
    // The variable hides Verdaccio's warnings about root and deprecated settings.
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, NODE_NO_WARNINGS: '1' } }
  )
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const ended = once(child, 'close')
  let output = ''
  await new Promise((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', text => {
      output += text
      if (output.includes('http address')) resolve(undefined)
    })
    ended.then(() => reject(new Error(`verdaccio ended: ${output}`)))
  })
  const answer = await fetch(`${url}/-/user/org.couchdb.user:test`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'test', password: 'memwatch-test' })
  })
  const { token } = await answer.json()
  return {
    url,
    token,
    async stop () {
      child.kill('SIGTERM')
      await ended
      process.removeListener('exit', kill)
    }
  }
}

/**
 * Publishes every package of this work tree.
 * @param {{ url: string, token: string }} registry
 * @param {string} folder for npm's settings
 */
function publishPackages ({ url, token }, folder) {
  const settings = path.join(folder, 'publish.npmrc')
  fs.writeFileSync(
    settings,
    `registry=${url}/\n${url.replace('http:', '')}/:_authToken=${token}\n`
  )
  for (const name of folders) {
    execFileSync('npm', ['publish', '--silent', '--userconfig', settings], {
      cwd: path.join(ROOT, name),
      stdio: ['ignore', 'ignore', 'inherit']
    })
  }
}

module.exports = { publishPackages, startRegistry }
