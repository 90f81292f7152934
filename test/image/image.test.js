'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { parse } = require('yaml')
const { fixtures } = require('./containers-of-a-test')
const { containerStore } = require('../support/containers')
const { productImage, BASE } = require('../support/images')
const { describeWithImageTools } = require('../support/tools')
const { eventually } = require('../support/exporter')
const { version } = require('../../exporter/package.json')
const { devDependencies } = require('../../package.json')

const IMAGE = 'localhost/memwatch:test'
const MIB = 2 ** 20
const ROOT = path.join(__dirname, '../..')
/** Options of a sidecar: read-only, without network and without capabilities. */
const CONFINED = [
  '--read-only',
  '--read-only-tmpfs=false',
  '--network',
  'none',
  '--cap-drop',
  'all',
  '--security-opt',
  'no-new-privileges',
  '--memory',
  '128m'
]

it('the Dockerfile has the version of the packages', () => {
  expect(fs.readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8')).toContain(
    `ARG VERSION=${version}\n`
  )
})

describeWithImageTools('the image', () => {
  /** @type {import('../support/containers').ContainerStore} */
  let store
  /** @type {ReturnType<typeof fixtures>} */
  let containers

  beforeAll(async () => {
    store = containerStore()
    await productImage(store, { tag: IMAGE })
    containers = fixtures(store)
  }, 600_000)
  afterEach(() => containers?.remove())
  afterAll(async () => { await store?.tryPodman('rmi', '--force', IMAGE) })

  const inside = async (...command) =>
    store.podman('run', '--rm', ...CONFINED, '--entrypoint', command[0], IMAGE, ...command.slice(1))

  it('runs as an unprivileged user, with a health check, labels and licences', async () => {
    const { Config } = await store.inspect(IMAGE)
    expect(Config).toMatchObject({
      User: '65532:65532',
      Cmd: ['exporter'],
      ExposedPorts: { '16369/tcp': {} }
    })
    expect(Config.Labels).toMatchObject({
      'org.opencontainers.image.licenses': 'MIT',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.title': 'memwatch'
    })
    expect((await store.inspect(IMAGE)).Healthcheck.Test[0]).toBe('CMD')
  })

  it('runs commands of the command line', async () => {
    const help = await store.podman('run', '--rm', ...CONFINED, IMAGE, '--help')
    expect(help).toContain('memwatch exporter')
    expect(await inside('memwatch', '--version')).toBe(version)
  })

  it('adds at most 200 MB to its base', async () => {
    const over = (await store.inspect(IMAGE)).Size - (await store.inspect(BASE)).Size
    expect(over).toBeGreaterThan(10 * MIB)
    expect(over).toBeLessThan(200 * MIB)
  })

  it('lists its contents with licences, and contains nothing for development only', async () => {
    const installed = JSON.parse(
      await inside(
        'node',
        '-e',
        `
      const fs = require('fs'), path = require('path')
      const packagesIn = folder => fs.readdirSync(folder).filter(name => !name.startsWith('.')).flatMap(name => {
        const at = path.join(folder, name)
        if (name.startsWith('@')) return packagesIn(at)
        const { name: own, version } = JSON.parse(fs.readFileSync(path.join(at, 'package.json')))
        return [own + '@' + version, ...fs.existsSync(path.join(at, 'node_modules')) && !fs.lstatSync(at).isSymbolicLink() ? packagesIn(path.join(at, 'node_modules')) : []]
      })
      console.log(JSON.stringify([...new Set(packagesIn('/opt/memwatch/node_modules'))]))`
      )
    )
    const { components } = JSON.parse(await inside('cat', '/opt/memwatch/sbom.cdx.json'))
    const listed = components.map(({ purl }) => decodeURIComponent(purl.replace('pkg:npm/', '')))
    expect(installed.length).toBeGreaterThan(80)
    expect([...new Set(listed)].sort()).toEqual(installed.sort())

    const licences = (await inside('cat', '/opt/memwatch/licences.txt'))
      .split('\n')
      .map(line => line.split('\t'))
    const licensed = new Map(licences.map(([name, licence]) => [name, licence]))
    expect(installed.filter(name => !licensed.get(name))).toEqual([])
    expect(
      installed
        .filter(name => Object.keys(devDependencies).some(dev => name.startsWith(`${dev}@`)))
        .filter(name => !/^(ajv|yaml|@fastify\/fast-json-stringify-compiler|@opentelemetry\/semantic-conventions)@/.test(name))
    ).toEqual([])
  })

  it('has a health check without a shell: healthy while the exporter answers', async () => {
    const { id } = await containers.start([...CONFINED, IMAGE], /metrics at/)
    const { Healthcheck } = await store.inspect(IMAGE)
    const check = () => store.tryPodman('exec', id, ...Healthcheck.Test.slice(1))
    expect(await check()).toMatchObject({ code: 0 })
    expect(await store.podman('exec', id, 'memwatch', 'top', '--once')).toContain('No target')
    const other = await containers.start(
      [...CONFINED, '--env', 'MEMWATCH_LISTEN=127.0.0.1:9999', IMAGE],
      /metrics at/
    )
    expect(await store.tryPodman('exec', other.id, ...Healthcheck.Test.slice(1))).toMatchObject({
      code: 0
    })
    expect(
      await store.tryPodman(
        'exec',
        '--env',
        'MEMWATCH_LISTEN=127.0.0.1:16369',
        other.id,
        ...Healthcheck.Test.slice(1)
      )
    ).toMatchObject({ code: 1 })
  })

  it('accepts agents of another user through a shared folder, and stores frames', async () => {
    const [shared, data] = [containers.folder(), containers.folder()]
    const { id } = await containers.start(
      [
        ...CONFINED,
        '--volume',
        `${shared}:/run/memwatch`,
        '--volume',
        `${data}:/var/lib/memwatch`,
        '--env',
        'MEMWATCH_DATA_DIR=/var/lib/memwatch',
        IMAGE
      ],
      /metrics at/
    )
    await store.podman('exec', id, 'cp', '-r', '/opt/memwatch/agent', '/run/memwatch/agent')
    await containers.start(
      [
        ...CONFINED,
        '--user',
        '1000:1000',
        '--group-add',
        '65532',
        '--volume',
        `${shared}:/run/memwatch:ro`,
        '--env',
        'MEMWATCH_SOCKET=/run/memwatch/exporter.sock',
        '--env',
        'MEMWATCH_NAME=shop',
        BASE,
        'node',
        '--require',
        '/run/memwatch/agent/index.js',
        '-e',
        'console.log("serving"); setInterval(() => {}, 1000)'
      ],
      /serving/
    )
    const metrics = () =>
      store.podman(
        'exec',
        id,
        'node',
        '-e',
        "fetch('http://127.0.0.1:16369/metrics').then(r => r.text()).then(console.log)"
      )
    expect(
      await eventually(metrics, text => text.includes('memwatch_target_up{target="shop"'))
    ).toMatch(/memwatch_target_up\{target="shop",thread="main"\} 1/)
    expect(await store.podman('exec', id, 'memwatch', 'top', '--once')).toMatch(/^. shop +\d+ MiB/m)
    await store.podman('stop', '--time', '20', id)
    expect(await store.podman('inspect', '--format', '{{.State.ExitCode}}', id)).toBe('0')
    expect(fs.readdirSync(data)).not.toEqual([])
  })

  it('runs by compose.yaml: installs the agent, watches the app and prints its fix', async () => {
    const { services } = parse(fs.readFileSync(path.join(ROOT, 'compose.yaml'), 'utf8'))
    const volumes = [await containers.volume(), await containers.volume()]
    /** Arguments of podman for a service. @param {any} service */
    const words = ({
      image,
      command,
      user,
      group_add: groups = [],
      environment = {},
      volumes: mounted,
      mem_limit: memory,
      read_only: readOnly,
      cap_drop: dropped = [],
      security_opt: options = []
    }) => [
      '--network',
      'none',
      ...(user ? ['--user', user] : []),
      ...groups.flatMap(group => ['--group-add', group]),
      ...Object.entries(environment).flatMap(([name, value]) => [
        '--env',
        `${name}=${String(value)
          .replace(/\$\{APP_NODE_OPTIONS:-\}/, '')
          .trim()}`
      ]),
      ...mounted.flatMap(volume => [
        '--volume',
        volume
          .replace(/^memwatch:/, `${volumes[0]}:`)
          .replace(/^histories:/, `${volumes[1]}:`)
          .replace(/^\.\//, `${ROOT}/`)
      ]),
      ...(memory ? ['--memory', memory] : []),
      ...(readOnly ? ['--read-only', '--read-only-tmpfs=false'] : []),
      ...dropped.flatMap(name => ['--cap-drop', name]),
      ...options.flatMap(option => ['--security-opt', option]),
      image.replace(/^\$\{APP_IMAGE:-(.*)\}$/, BASE).replace('memwatch:local', IMAGE),
      ...command
    ]
    await store.podman('run', '--rm', ...words(services.agent))
    const { id } = await containers.start(words(services.exporter), /metrics at/)
    await containers.start(words(services.app), /"?requests/)
    const fix = () =>
      store.tryPodman('exec', id, 'memwatch', 'fix', 'app', '--format', 'node-options')
    expect((await eventually(fix, ({ code }) => code === 0, 150_000)).stdout).toMatch(
      /^--max-semi-space-size=\d+ --require \/run\/memwatch\/agent\/index\.js\n$/
    )
    const report = await store.tryPodman('exec', id, 'memwatch', 'capture', 'app', 'report')
    expect(report).toEqual({ ...report, code: 0 })
  }, 200_000)
})
