'use strict'

const { readRssBytes } = require('../primordials')
const { isTemporary, kernelFiles, numberAfter, leadingNumbers } = require('../read-file')

/** Line of /proc/self/status -> field. Sizes are in kB there. proc(5). */
const SIZES = /** @type {const} */ ([
  ['VmRSS:', 'rssBytes'],
  ['RssAnon:', 'rssAnonBytes'],
  ['RssFile:', 'rssFileBytes'],
  ['RssShmem:', 'rssShmemBytes'],
  ['VmSwap:', 'swapBytes'],
  ['VmSize:', 'virtualBytes'],
  ['VmData:', 'dataBytes']
])
/** The kernel writes all of status at some cost; sizes alone come cheap from statm. */
const STATUS_EVERY_FRAMES = 10

/**
 * What the kernel says of the process: RSS and its parts. Elsewhere than on Linux, or where /proc
 * is closed, RSS alone; where there is no /proc, nothing.
 * @param {{ files?: Pick<import('../read-file').KernelFiles, 'read' | 'readKept'> }} [dependencies]
 * @returns {import('./collector').Collector}
 */
function processStatus ({ files = kernelFiles() } = {}) {
  let closed = process.platform !== 'linux'
  let pageBytes = 0
  const pages = [0, 0, 0]

  /** @param {import('./collector').Values} values */
  const readStatus = values => {
    const text = files.read('/proc/self/status')
    for (const [line, field] of SIZES) {
      const kilobytes = numberAfter(text, line)
      if (kilobytes !== undefined) values[field] = kilobytes * 1024
    }
    values.threads = numberAfter(text, 'Threads:')
  }
  /**
   * size, resident and shared (file and shmem) in pages. proc(5).
   * @param {import('./collector').Values} values
   */
  const readStatm = values => {
    leadingNumbers(files.readKept('/proc/self/statm'), pages)
    const [size, resident, shared] = pages
    // Node does not tell the page size; both files tell the size of the same address space. It is a
    // power of two.
    pageBytes ||= 2 ** Math.round(Math.log2((values.virtualBytes ?? NaN) / size))
    values.virtualBytes = size * pageBytes
    values.rssBytes = resident * pageBytes
    values.rssAnonBytes = (resident - shared) * pageBytes
  }

  // On Linux libuv reads it from /proc, too: where nothing is mounted there it throws, and does so
  // each time.
  let readsRss = true
  /** @param {import('./collector').Values} values */
  const readRssAlone = values => {
    try {
      values.rssBytes = readRssBytes()
    } catch (error) {
      readsRss = isTemporary(error)
    }
  }

  return {
    fields: [
      'rssBytes',
      'rssAnonBytes',
      'rssFileBytes',
      'rssShmemBytes',
      'swapBytes',
      'virtualBytes',
      'dataBytes',
      'threads'
    ],
    read (values, { count }) {
      if (!closed) {
        try {
          if (pageBytes === 0 || count % STATUS_EVERY_FRAMES === 0) readStatus(values)
          readStatm(values)
        } catch (error) {
          // the permission model, or a /proc that is not mounted: it stays so
          closed = !isTemporary(error)
        }
      }
      if (closed && readsRss) readRssAlone(values)
    }
  }
}

module.exports = { processStatus }
