'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { once } = require('node:events')
const { gunzipSync } = require('node:zlib')
const { eventually } = require('./exporter')

const RECORDINGS = path.join(__dirname, '../recordings')

/**
 * Finds a recording of the lab app, of any Node.js version.
 * @param {string} app
 * @returns {string} file
 */
function recordingOf (app) {
  const file = fs
    .readdirSync(RECORDINGS)
    .find(name => name.replace(/^\d+-/, '') === `${app}-broken.ndjson.gz`)
  if (!file) throw new Error(`no recording of ${app}`)
  return path.join(RECORDINGS, file)
}

/**
 * An agent that sends recorded messages of a lab app's main thread as fast as the exporter accepts
 * them, except the bye.
 * @param {Awaited<ReturnType<typeof import('./exporter').startExporter>>} it_
 * @param {string} app
 * @param {object} [changes] of its hello
 * @param {object} [options]
 * @param {number} [options.share] share of its frames to send at once; the others follow, one a
 *   second, like those of a running process
 * @returns {Promise<import('node:net').Socket>} resolves to its connection once the exporter has
 *   accepted all
 */
async function tellRecording (it_, app, changes = {}, { share = 1 } = {}) {
  const lines = gunzipSync(fs.readFileSync(recordingOf(app)))
    .toString()
    .trim()
    .split('\n')
    .map(text => JSON.parse(text))
    .filter(({ line, session }) => line && session === 1)
    .map(({ line }) => line)
  const hello = { ...lines.find(({ type }) => type === 'hello'), ...changes }
  const frames = lines.filter(({ type }) => type === 'frame')
  const connection = await it_.connect()
  const later = frames.splice(Math.ceil(share * frames.length))
  for (const line of [hello, ...frames]) {
    if (!connection.write(JSON.stringify(line) + '\n')) await once(connection, 'drain')
  }
  const last = frames[frames.length - 1].sequence
  await eventually(
    () =>
      it_.exporter.targets.find(
        target => target.hello.pid === hello.pid && target.hello.threadId === 0
      )?.frame?.sequence,
    sequence => sequence === last
  )
  const telling = setInterval(() => {
    const frame = later.shift()
    if (frame) connection.write(JSON.stringify(frame) + '\n')
    else clearInterval(telling)
  }, 1000)
  connection.once('close', () => clearInterval(telling))
  return connection
}

module.exports = { tellRecording }
