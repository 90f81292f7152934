'use strict'

const { dockerfileLines } = require('./forms')

/**
 * Library name of jemalloc in distributions. The loader finds a name without a path on every
 * architecture.
 */
const JEMALLOC = 'libjemalloc.so.2'

/**
 * jemalloc settings for a container. A background thread returns freed pages within a second. Two
 * arenas are enough for a process whose JavaScript runs on one thread. See jemalloc(3),
 * opt.background_thread and opt.dirty_decay_ms.
 */
const MALLOC_CONF = 'background_thread:true,narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0'

/**
 * Characters of an LD_PRELOAD that a fix may repeat: library paths, and the colons and spaces
 * between them. See ld.so(8).
 */
const LIBRARIES = /^[\p{L}\p{M}\p{N}_./+@~: -]*$/u

/**
 * @param {Record<string, string>} env
 * @returns {import('../diagnoses/define-diagnosis').Change}
 */
const envChange = env => ({ env, dockerfile: dockerfileLines(env).join('\n') })

/**
 * Replaces glibc's malloc by jemalloc.
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 */
function jemallocChange (target) {
  const preloaded = target.mallocEnv.LD_PRELOAD ?? ''
  const isRepeated = LIBRARIES.test(preloaded)
  return {
    ...envChange({
      LD_PRELOAD: isRepeated && preloaded ? `${JEMALLOC}:${preloaded}` : JEMALLOC,
      MALLOC_CONF
    }),
    ...(!isRepeated && {
      note:
        'LD_PRELOAD contains libraries that memwatch leaves out, because of characters in their ' +
        'names: add them yourself.'
    })
  }
}

module.exports = { envChange, jemallocChange, MALLOC_CONF }
