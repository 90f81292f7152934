'use strict'

const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const { readme } = require('./bare')
const { Installed, PRELOADED, writeApp } = require('./installed')
const { freePort } = require('../support/free-port')
const { SCOPE } = require('../../scripts/packages')
const { version } = require('../../package.json')

const QUICK_START = path.join(__dirname, '../../docs/quick-start.md')
/** Cases with other tools of apps, tested with npm only. */
const TOOLS = { esbuild: '0.28.2', pm2: '7.0.4', tsx: '4.23.15' }
const COMMAND_LINE = { [`${SCOPE}/cli`]: version, memwatch: `npm:${SCOPE}/agent@${version}` }
/** docs/quick-start.md gives users of yarn the same advice. */
const RESOLUTIONS = { 'light-my-request': '6.6.0' }

/**
 * @typedef {object} Place
 * @property {string} folder empty
 * @property {string} version of Node.js
 * @property {string} node path of its binary
 * @property {import('./managers').Manager} manager
 * @property {string} script of the manager
 * @property {{ url: string }} registry
 *
 * @typedef {{ title: string, node: string, manager: string, test: (place: Place) => Promise<string
 *   | void> }} Case test: resolves to a measured value to be printed, if any
 */

/**
 * @param {Place} place
 * @param {Record<string, string>} dependencies
 * @param {object} [manifest] further fields of package.json
 */
async function install ({ folder, node, manager, script, registry }, dependencies, manifest) {
  writeApp(folder, { dependencies, ...manifest })
  manager.configure(folder, registry.url)
  const installed = new Installed(folder, node)
  const { code, stdout, stderr } = await installed.run(
    'node', [script, ...manager.install], { CI: '1' }
  )
  assert.strictEqual(code, 0, `${stdout}${stderr}`)
  return installed
}

/** @param {Place} place */
async function everything (place) {
  const needsResolution = place.manager.keepsNoVersion && place.version.startsWith('20.')
  const installed = await install(
    place, COMMAND_LINE, needsResolution ? { resolutions: RESOLUTIONS } : {}
  )
  await installed.checkRun()
  await installed.checkApps(PRELOADED)
}

/** @param {Place} place */
async function tools (place) {
  const installed = await install(place, { ...COMMAND_LINE, ...TOOLS })
  const bundle = async (/** @type {string[]} */ ...options) => {
    const { code, stderr } = await installed.run(
      'esbuild', ['--bundle', '--platform=node', ...options]
    )
    assert.strictEqual(code, 0, stderr)
  }
  await bundle('server.js', '--outfile=bundle.js')
  await bundle('with-agent.js', '--outfile=bundle-with-agent.js')
  await bundle('with-agent.js', '--external:memwatch', '--outfile=bundle-beside-agent.js')
  await installed.checkApps({
    typescript: { args: ['-r', 'memwatch/agent', '--import', 'tsx', 'server.ts'] },
    'typescript-by-tsx': {
      command: 'tsx', args: ['server.ts'], env: { NODE_OPTIONS: '--require memwatch/agent' }
    },
    bundle: { args: ['-r', 'memwatch/agent', 'bundle.js'] },
    'agent-in-bundle': { args: ['bundle-with-agent.js'] },
    'agent-beside-bundle': { args: ['bundle-beside-agent.js'] }
  })
  await checkPm2(installed)
}

/**
 * The configuration of docs/quick-start.md, with another port and socket.
 * @param {Installed} installed
 */
async function checkPm2 (installed) {
  const [, config] = /** @type {RegExpExecArray} */ (
    /```js\n(\/\/ ecosystem\.config\.js\n[\s\S]*?)```/.exec(fs.readFileSync(QUICK_START, 'utf8'))
  )
  fs.writeFileSync(path.join(installed.folder, 'ecosystem.config.js'), config)
  const listen = `127.0.0.1:${await freePort()}`
  const env = {
    PM2_HOME: path.join(installed.folder, '.pm2'),
    MEMWATCH_LISTEN: listen
  }
  try {
    const { code, stdout, stderr } = await installed.run('pm2', ['start', 'ecosystem.config.js'], env)
    assert.strictEqual(code, 0, stdout + stderr)
    await installed.checkTargets(`http://${listen}/metrics`, ['shop'])
  } finally {
    await installed.run('pm2', ['kill'], env)
  }
}

/**
 * Commands of a new user, in a folder without any package.
 * @param {Place} place
 */
async function atOnce ({ folder, node, manager, script, registry }) {
  writeApp(folder)
  manager.configure(folder, registry.url)
  const installed = new Installed(folder, node)
  await installed.checkRun('node', [script, 'exec', '--yes', '--', `${SCOPE}/cli`])
  assert.strictEqual(fs.existsSync(path.join(folder, 'node_modules')), false)
}

/** @param {Place} place */
async function optionalParts (place) {
  const installed = await install(place, {
    ...Object.fromEntries(['cli', 'lab', 'mcp', 'otlp'].map(name => [`${SCOPE}/${name}`, version]))
  })
  const { stdout } = await installed.run('memwatch', ['simulate', '--help'])
  assert.match(stdout, /^ {2}semi-space-starvation /m)
  // The MCP server ends without an error when stdin ends, even if no client has connected.
  assert.strictEqual((await installed.run('memwatch', ['mcp'])).code, 0)
  await installed.checkApps({}, undefined, ['--otlp', 'http://127.0.0.1:4318'])
}

/** @param {Place} place */
async function agentAlone (place) {
  const { memwatch } = COMMAND_LINE
  const installed = await install(place, { memwatch })
  assert.deepStrictEqual(
    fs.readdirSync(path.join(installed.folder, 'node_modules')).filter(name => !name.startsWith('.')),
    ['memwatch']
  )
  await installed.checkApps(PRELOADED, path.join(__dirname, '../../cli/memwatch.js'))
  const { code, stderr } = await installed.run('memwatch', ['run'])
  assert.match(stderr, new RegExp(`npm install --save-dev ${SCOPE}/cli`))
  assert.strictEqual(code, 2)
}

/**
 * @param {readonly string[]} nodes versions that the command line supports
 * @returns {Case[]}
 */
function cases (nodes) {
  const newest = nodes.filter((version, i) => version.split('.')[0] !== nodes[i + 1]?.split('.')[0])
  return [
    ...nodes.flatMap(node =>
      ['npm', 'pnpm', 'yarn 1', 'yarn 4'].map(manager => ({
        title: `command line and agent by ${manager} on Node.js ${node}`,
        node,
        manager,
        test: everything
      }))),
    {
      title: `README's first commands in a bare container with Node.js ${newest[1]}`,
      node: newest[1],
      manager: 'npm 10',
      test: readme
    },
    ...nodes.map(node => ({
      title: `npx at once on Node.js ${node}`,
      node,
      manager: 'npm',
      test: atOnce
    })),
    ...['npm', 'pnpm', 'yarn 1', 'yarn 4'].map(manager => ({
      title: `what is optional by ${manager}`,
      node: newest[1],
      manager,
      test: optionalParts
    })),
    ...newest.map(node => ({
      title: `TypeScript by tsx, bundles by esbuild, and pm2 on Node.js ${node}`,
      node,
      manager: 'npm',
      test: tools
    })),
    ...['18.20.8', ...newest].map(node => ({
      title: `the agent alone on Node.js ${node}`,
      node,
      manager: 'npm 10',
      test: agentAlone
    }))
  ]
}

module.exports = { cases }
