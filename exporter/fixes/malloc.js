'use strict'

/** Where a distribution's package puts jemalloc. The plain name is found by the loader on every architecture. */
const JEMALLOC = 'libjemalloc.so.2'

/**
 * jemalloc for a container: a background thread returns freed pages within a second, and two arenas do for a process whose
 * JS runs on one thread. jemalloc(3), opt.background_thread, opt.dirty_decay_ms.
 */
const MALLOC_CONF = 'background_thread:true,narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0'

/**
 * @param {Record<string, string>} env
 * @param {string} [before] Dockerfile lines that must come first
 * @returns {import('../diagnoses/define-diagnosis').Change}
 */
function envChange (env, before = '') {
  const entries = Object.entries(env)
  return {
    env,
    dockerfile: before + entries.map(([name, value]) => `ENV ${name}=${value}`).join('\n'),
    kubernetes: `env:\n${entries.map(([name, value]) => `  - name: ${name}\n    value: "${value}"`).join('\n')}`
  }
}

/**
 * Replace glibc's malloc by jemalloc.
 * @param {import('memwatch/frame').Hello} target
 */
function jemallocChange (target) {
  const preloaded = target.mallocEnv.LD_PRELOAD
  return envChange({
    LD_PRELOAD: preloaded ? `${JEMALLOC}:${preloaded}` : JEMALLOC,
    MALLOC_CONF
  }, 'RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2 && rm -rf /var/lib/apt/lists/*\n')
}

module.exports = { envChange, jemallocChange, MALLOC_CONF }
