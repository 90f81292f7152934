'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { spawnBounded, environment } = require('../support/agent-collector')
const { freePort } = require('../support/free-port')
const { runnersWith } = require('../support/tools')

const ROOT = path.join(__dirname, '../..')
const PAGE = fs.readFileSync(path.join(ROOT, 'docs/quick-start.md'), 'utf8')
/** Examples of the page that the test runs: commands and expected output. */
const examples = [...PAGE.matchAll(/<!-- run(?:: says "([^"]+)")? -->\n```sh\n([\s\S]*?)```/g)].map(
  ([, says, commands]) => ({ says, commands })
)

const { describe: describeWithCurl } = runnersWith(
  'the examples of docs/quick-start.md',
  spawnSync('curl', ['--version']).status === 0 ? undefined : 'curl is not installed'
)

it('the page marks exactly the examples that can run', () => {
  expect(examples.length).toBe(3)
  expect([...PAGE.matchAll(/<!-- run/g)].length).toBe(examples.length)
})

describeWithCurl('its examples', () => {
  let folder
  let ports
  beforeAll(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-quick-start-'))
    fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
    ports = [await freePort(), await freePort()]
  })
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

  it.each(examples.map(({ says, commands }) => [commands.trim().split('\n')[0], says, commands]))(
    '%s',
    async (_, says, commands) => {
      const [own, api] = ports
      // Commands with other ports, as those of the page may be in use on this machine. Processes
      // still running at the end are ended.
      const script = 'set -eum\ntrap \'for job in $(jobs -p); do kill -- -$job || true; done; ' +
        'wait || true\' ' +
          `EXIT\n${commands.replaceAll('localhost:3000', `localhost:${own}`).replaceAll('16369', api)}`
      const { code, stdout, stderr } = await spawnBounded('/bin/bash', ['-c', script], {
        cwd: folder,
        env: environment({
          PORT: String(own),
          MEMWATCH_LISTEN: `127.0.0.1:${api}`,
          MEMWATCH_URL: `http://127.0.0.1:${api}`,
          MEMWATCH_SOCKET: path.join(folder, 'exporter.sock')
        }),
        timeoutMs: 120_000
      }).ended
      expect({ code, stdout, stderr }).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(says ?? '')
      })
    },
    130_000
  )
})
