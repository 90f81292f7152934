'use strict'

/**
 * Validators of requests: Fastify's own, loaded with the first request that has a schema; each
 * schema is compiled on first use. Loading them took half of the exporter's start, and a sidecar
 * that is only scraped never needs them. An error is thrown to that request (500), and the next
 * request tries again.
 *
 * Answers have only the keys of their schemas (test/exporter/api.test.js checks it), so
 * JSON.stringify serializes them. A compiler of serializers costs 10 MiB, and a tenth of a core a
 * second at the first request for each route.
 *
 * @type {Required<NonNullable<NonNullable<
 *   import('fastify').FastifyServerOptions['schemaController']>['compilersFactory']>>}
 */
const lateCompilers = {
  buildValidator: (/** @type {any} */ shared, /** @type {any} */ options) =>
    late(() => require('@fastify/ajv-compiler')()(shared, options)),
  buildSerializer: () => () => JSON.stringify
}

/**
 * @param {() => (route: any) => any} load
 * @returns {(route: any) => any} a compiler that works when its result is first called
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
      /** Errors of the data, where Fastify looks for them. @type {unknown} */
      errors: undefined
    })
    return run
  }
}

module.exports = { lateCompilers }
