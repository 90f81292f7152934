'use strict'

const { dockerfileLines } = require('./forms')

/**
 * Where a distribution's package puts jemalloc. The plain name is found by the loader on every
 * architecture.
 */
const JEMALLOC = 'libjemalloc.so.2'

/**
 * jemalloc for a container: a background thread returns freed pages within a second, and two arenas
 * do for a process whose JS runs on one thread. jemalloc(3), opt.background_thread,
 * opt.dirty_decay_ms.
 */
const MALLOC_CONF = 'background_thread:true,narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0'

/** Paths and names of libraries, which colons and spaces separate: ld.so(8). */
const LIBRARIES = /^[\p{L}\p{M}\p{N}_./+@~: -]*$/u

/**
 * @param {Record<string, string>} env
 * @returns {import('../diagnoses/define-diagnosis').Change}
 */
const envChange = env => ({ env, dockerfile: dockerfileLines(env).join('\n') })

/**
 * Replace glibc's malloc by jemalloc.
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
        'LD_PRELOAD holds libraries that are not repeated here, because of characters in their ' +
        'names: add them by hand.'
    })
  }
}

module.exports = { envChange, jemallocChange, MALLOC_CONF }
