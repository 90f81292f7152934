'use strict'

const { fileReader } = require('../read-file')

/** Line of /proc/self/status → field. Sizes are in kB there. proc(5). */
const LINES = Object.freeze({
  VmRSS: 'rssBytes',
  RssAnon: 'rssAnonBytes',
  RssFile: 'rssFileBytes',
  RssShmem: 'rssShmemBytes',
  VmSwap: 'swapBytes',
  VmSize: 'virtualBytes',
  VmData: 'dataBytes'
})
const PATTERN = new RegExp(`^(${Object.keys(LINES).join('|')}):\\s+(\\d+) kB$|^Threads:\\s+(\\d+)$`, 'gm')

/**
 * What the kernel says of the process: RSS and its parts. Elsewhere than on Linux, or where /proc is closed, RSS alone.
 * @param {{ read?: (file: string) => string }} [dependencies]
 * @returns {import('./collector').Collector}
 */
function processStatus ({ read = fileReader() } = {}) {
  let closed = process.platform !== 'linux'
  return {
    fields: ['rssBytes', 'rssAnonBytes', 'rssFileBytes', 'rssShmemBytes', 'swapBytes', 'virtualBytes', 'dataBytes', 'threads'],
    read (values) {
      if (!closed) {
        try {
          for (const [, name, kilobytes, threads] of read('/proc/self/status').matchAll(PATTERN)) {
            if (threads !== undefined) values.threads = Number(threads)
            else values[LINES[/** @type {keyof typeof LINES} */ (name)]] = Number(kilobytes) * 1024
          }
        } catch {
          closed = true // the permission model, or a /proc that is not mounted: it stays so
        }
      }
      if (values.rssBytes === undefined) values.rssBytes = process.memoryUsage.rss()
    }
  }
}

module.exports = { processStatus }
