'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { gunzipSync } = require('node:zlib')
const { fields } = require('../agent/protocol/frame')

/** Frames at the start of a recording that are left out: the app still loads. */
const START_FRAMES = 3
const counters = Object.entries(fields)
  .filter(([, { kind, shape }]) => kind === 'counter' && shape === 'number')
  .map(([name]) => name)

/**
 * Frames for a target of any age: those of a recording, repeated with continued counters.
 * @param {string} name of a file in test/recordings
 * @returns {{ hello: any, frameOf: (n: number) => object }} frameOf: n counts from 0, one a second
 */
function repeatRecording (name) {
  const lines = gunzipSync(fs.readFileSync(path.join(__dirname, '../test/recordings', name)))
    .toString()
    .trim()
    .split('\n')
    .map(text => JSON.parse(text).line)
    .filter(Boolean)
  const frames = lines.filter(({ type }) => type === 'frame').slice(START_FRAMES)
  const last = frames[frames.length - 1].values
  return {
    hello: lines.find(({ type }) => type === 'hello'),
    frameOf: n => {
      const { values } = frames[n % frames.length]
      const rounds = Math.floor(n / frames.length)
      const carried = { ...values }
      if (rounds > 0) {
        for (const name of counters) {
          if (values[name] !== undefined && last[name] !== undefined) {
            carried[name] = values[name] + rounds * last[name]
          }
        }
      }
      return {
        v: 1,
        type: 'frame',
        sequence: n + 1,
        atUnixMs: Date.now(),
        uptimeSeconds: n + 1,
        values: carried
      }
    }
  }
}

module.exports = { repeatRecording }
