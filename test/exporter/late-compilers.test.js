'use strict'

const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { fastify } = require('fastify')

const EXPORTER = path.join(__dirname, '../../exporter/exporter.js')

/**
 * A server with modules of its own, so that a failure of one test does not affect the next.
 */
function freshServer () {
  const { createServer } = require('../../exporter/expose/server')
  const { lateCompilers } = require('../../exporter/expose/late-compilers')
  const { Exporter } = require('../../exporter/exporter')
  const { exporterConfig } = require('../support/exporter')
  const start = () => createServer(new Exporter(exporterConfig('/nowhere', { token: 'token' })))
  return { start, lateCompilers }
}
const ask = (server, url) => server.inject({ url, headers: { authorization: 'Bearer token' } })

beforeEach(() => jest.resetModules())
afterEach(() => jest.restoreAllMocks())

it('a scrape loads neither a schema compiler nor the description; prom-client is never loaded', () => {
  const code = `
    const { Exporter } = require(${JSON.stringify(EXPORTER)})
    const socket = require('node:path').join(require('node:os').tmpdir(), 'memwatch-late-' + process.pid)
    const compilers = ['ajv/', '@fastify/fast-json-stringify-compiler/']
    const names = [...compilers, '@fastify/swagger/', 'prom-client/']
    const isLoaded = name => Object.keys(require.cache)
      .some(file => file.includes('/node_modules/' + name))
    const loaded = () => names.map(isLoaded)
    async function main () {
      const exporter = new Exporter({ listen: { host: '127.0.0.1', port: 0 }, socket: { path: socket }, compat: true, maxTargets: 1, logLevel: 'silent' })
      const { listen } = await exporter.start()
      const ask = async at => (await fetch('http://127.0.0.1:' + listen.port + at)).text()
      for (const at of ['/metrics', '/-/healthy', '/-/ready']) await ask(at)
      const scraped = loaded()
      for (const at of ['/api/v1/targets?limit=1', '/api/v1/openapi.json']) await ask(at)
      console.log(JSON.stringify([scraped, loaded()]))
      await exporter.stop()
    }
    main().then(() => process.exit())`
  expect(JSON.parse(execFileSync(process.execPath, ['-e', code], { encoding: 'utf8' }))).toEqual([
    [false, false, false, false],
    [true, false, true, false]
  ])
})

it('all schemas compile, because the exporter would detect a wrong one only on use', async () => {
  const { start, lateCompilers } = freshServer()
  const compiled = { validator: 0, serializer: 0 }
  /**
   * @param {'validator' | 'serializer'} kind
   * @param {any} build
   */
  const counted =
    (kind, build) =>
      (...schemas) => {
        const compile = build()(...schemas)
        return route => {
          compiled[kind]++
          return compile(route)
        }
      }
  jest
    .spyOn(lateCompilers, 'buildValidator')
    .mockImplementation(counted('validator', () => require('@fastify/ajv-compiler')()))
  jest
    .spyOn(lateCompilers, 'buildSerializer')
    .mockImplementation(
      counted('serializer', () => require('@fastify/fast-json-stringify-compiler')())
    )
  const server = start()
  await server.ready()
  await server.close()
  expect(compiled.validator).toBeGreaterThan(5)
  expect(compiled.serializer).toBeGreaterThan(20)
})

it('validators accept the same arguments as the compilers of fastify', async () => {
  const { lateCompilers } = freshServer()
  const answers = await Promise.all(
    [{}, { schemaController: { compilersFactory: lateCompilers } }].map(async options => {
      const server = fastify(options)
      const querystring = {
        type: 'object',
        properties: { limit: { type: 'integer', minimum: 1, default: 5 } },
        additionalProperties: false
      }
      const body = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
      server.get('/', { schema: { querystring } }, async ({ query }) => query)
      server.post('/', { schema: { body } }, async () => ({}))
      const found = []
      for (const url of ['/', '/?limit=7', '/?limit=0', '/?limit=x', '/?limit=2&more=1']) {
        found.push(await server.inject(url))
      }
      found.push(
        await server.inject({ method: 'POST', url: '/', body: {} }),
        await server.inject({ method: 'POST', url: '/', body: { name: 'a' } })
      )
      await server.close()
      return found.map(({ statusCode, body }) => [statusCode, body])
    })
  )
  expect(answers[1]).toEqual(answers[0])
  expect(answers[1].map(([status]) => status)).toEqual([200, 200, 400, 400, 200, 400, 200])
  expect(answers[1][1]).toEqual([200, '{"limit":7}'])
})

it('simultaneous first requests are all answered', async () => {
  const server = freshServer().start()
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) =>
      ask(server, i % 2 ? '/api/v1/openapi.json' : '/api/v1/deaths?limit=2')
    )
  )
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200))
  expect(answers[0].json()).toEqual([])
  for (const i of [3, 5, 7]) expect(answers[i].body).toBe(answers[1].body)
  expect(Object.keys(answers[1].json().paths).length).toBeGreaterThan(10)
  await server.close()
})

it.each([
  ['@fastify/ajv-compiler', '/api/v1/deaths?limit=2'],
  ['@fastify/swagger', '/api/v1/openapi.json']
])('without %s only this request fails, and the next one tries again', async (name, url) => {
  let missing = true
  jest.doMock(name, () => {
    if (missing) throw new Error('gone from the disk')
    return jest.requireActual(name)
  })
  const server = freshServer().start()
  const failed = await ask(server, url)
  expect([failed.statusCode, failed.body]).toEqual([
    500,
    expect.stringContaining('gone from the disk')
  ])
  expect((await ask(server, '/')).statusCode).toBe(200)
  missing = false
  expect((await ask(server, url)).statusCode).toBe(200)
  await server.close()
  jest.dontMock(name)
})
