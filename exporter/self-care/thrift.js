'use strict'

const v8 = require('node:v8')
const { loopReader } = require('./load')

/**
 * V8 takes memory to be fast, and keeps what it took: for an exporter of ten targets that is
 * scraped each second, 30 MiB of new space within a minute. One that has little to do has no use
 * for that, and a sidecar's memory is paid for in every pod. Saved are 30 to 35 MiB of 100 to 115
 * on Node 20, 24 and 26, for 0.6 to 1.1 % of a core and 1 to 4 ms a scrape (after 70 s each). What
 * the flags below change, V8 asks for each time it decides, so that they may change while it runs;
 * on the command line it takes no growth factor below 2.
 */
const FLAGS = {
  /** The new space stays as small as it is; the old one is collected earlier. */
  thrifty: ['--semi-space-growth-factor=1', '--optimize-for-size'],
  /** What V8 does by itself. */
  generous: ['--semi-space-growth-factor=2', '--no-optimize-for-size']
}
const EVERY_MS = 10_000
/** So busy, it is spared work instead … */
const BUSY_RATIO = 0.1
/** … until it is as idle as this. */
const CALM_RATIO = 0.05

/**
 * @param {keyof typeof FLAGS} how
 * @param {number} loopRatio of the time that the event loop is busy
 * @returns {keyof typeof FLAGS} how from now on
 */
function nextThrift (how, loopRatio) {
  if (loopRatio >= BUSY_RATIO) return 'generous'
  return loopRatio <= CALM_RATIO ? 'thrifty' : how
}

/** @param {keyof typeof FLAGS} how */
function setFlags (how) {
  for (const flag of FLAGS[how]) v8.setFlagsFromString(flag)
}

/**
 * Has V8 save memory while this process has little to do, from now on. The earlier, the less has
 * been taken: V8 gives a new space back only when it idles.
 */
function keepThrifty () {
  /** @type {keyof typeof FLAGS} */
  let how = 'thrifty'
  const loopRatio = loopReader(EVERY_MS)
  setFlags(how)
  setInterval(() => {
    const next = nextThrift(how, loopRatio())
    if (next !== how) setFlags(next)
    how = next
  }, EVERY_MS).unref()
}

module.exports = { keepThrifty, nextThrift, setFlags }
