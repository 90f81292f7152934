'use strict'

/**
 * Fastify's own compilers of schemas, loaded when a route that needs them is first asked, and each schema compiled when it is first used: that was half of
 * the exporter's start, and a sidecar that is only scraped needs none of it. What fails is thrown to that request (500); the next one tries again.
 *
 * @type {Required<NonNullable<NonNullable<import('fastify').FastifyServerOptions['schemaController']>['compilersFactory']>>}
 */
const lateCompilers = {
  buildValidator: (/** @type {any} */ shared, /** @type {any} */ options) => late(() => require('@fastify/ajv-compiler')()(shared, options)),
  buildSerializer: (shared, options) => late(() => require('@fastify/fast-json-stringify-compiler')()(shared, options))
}

/**
 * @param {() => (route: any) => any} load
 * @returns {(route: any) => any} a compiler that compiles when what it made is first called
 */
function late (load) {
  /** @type {ReturnType<typeof load> | undefined} */
  let compiler
  return route => {
    /** @type {any} */
    let compiled
    const run = Object.assign((/** @type {any} */ data) => {
      compiled ??= (compiler ??= load())(route)
      const result = compiled(data)
      run.errors = compiled.errors
      return result
    }, {
      /** What is wrong with the data: fastify looks for it here. @type {unknown} */
      errors: undefined
    })
    return run
  }
}

module.exports = { lateCompilers }
