'use strict'

/**
 * Validators of requests. Fastify's own compiler is loaded with the first request that has a
 * schema, and each schema is compiled on first use. Loading it took half of the exporter's start
 * time, and a sidecar that is only scraped never needs it. If loading fails, this request fails
 * (500), and the next request tries again.
 *
 * Responses are serialized by JSON.stringify, because they contain only the keys of their schemas
 * (checked by test/exporter/api.test.js). Fastify's compiler of serializers would take 10 MiB, and
 * on a tenth of a core one second at the first request for each route.
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
 * @returns {(route: any) => any} a compiler that compiles when its result is first called
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
      /** Errors of the validated data, in the property that Fastify reads. @type {unknown} */
      errors: undefined
    })
    return run
  }
}

module.exports = { lateCompilers }
