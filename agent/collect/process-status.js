'use strict'

const { readRssBytes } = require('../primordials')
const { isTemporary, kernelFiles, numberAfter, leadingNumbers } = require('../read-file')

/** Fields by line of /proc/self/status. Sizes are in kB there. proc(5). */
const SIZES = /** @type {const} */ ([
  ['VmRSS:', 'rssBytes'],
  ['RssAnon:', 'rssAnonBytes'],
  ['RssFile:', 'rssFileBytes'],
  ['RssShmem:', 'rssShmemBytes'],
  ['VmSwap:', 'swapBytes'],
  ['VmSize:', 'virtualBytes'],
  ['VmData:', 'dataBytes']
])
/** The kernel needs longer for status than for statm. */
const STATUS_EVERY_FRAMES = 10

/**
 * RSS and its parts by the kernel. RSS alone is known on other systems than Linux, and if the
 * permission model denies /proc. Nothing is known on Linux without /proc.
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
   * Total size, resident and shared (file and shmem) in pages. proc(5).
   * @param {import('./collector').Values} values
   */
  const readStatm = values => {
    leadingNumbers(files.readKept('/proc/self/statm'), pages)
    const [size, resident, shared] = pages
    // Node does not report the page size. Both files give the size of the address space, and the
    // page size is a power of two.
    pageBytes ||= 2 ** Math.round(Math.log2((values.virtualBytes ?? NaN) / size))
    values.virtualBytes = size * pageBytes
    values.rssBytes = resident * pageBytes
    values.rssAnonBytes = (resident - shared) * pageBytes
  }

  // On Linux libuv reads RSS from /proc, too: without /proc it throws each time.
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
      'rssBytes', 'rssAnonBytes', 'rssFileBytes', 'rssShmemBytes', 'swapBytes', 'virtualBytes',
      'dataBytes', 'threads'
    ],
    read (values, { count }) {
      if (!closed) {
        try {
          if (pageBytes === 0 || count % STATUS_EVERY_FRAMES === 0) readStatus(values)
          readStatm(values)
        } catch (error) {
          // the permission model, or no /proc: both are permanent
          closed = !isTemporary(error)
        }
      }
      if (closed && readsRss) readRssAlone(values)
    }
  }
}

module.exports = { processStatus }
