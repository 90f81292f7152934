'use strict'

const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { PodSockets } = require('../../exporter/ingest/pod-sockets')
const { Listener } = require('../../exporter/ingest/listener')
const { startExporter, eventually } = require('../support/exporter')
const { hello, frame, line } = require('../support/frames')

const [ONE, OTHER] = [
  '0d4b1c3e-5a8f-4c6e-9b1a-6f2e8d7c0a11',
  '0d4b1c3e-5a8f-4c6e-9b1a-6f2e8d7c0a22'
]
const HOUR_MS = 3_600_000

let folder
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-pods-')) })
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }))

const socketOf = uid => path.join(folder, uid, 'exporter.sock')
/** Creates the folder of a pod, like the kubelet when the pod starts. @param {string} uid */
const podStarts = uid => fs.mkdirSync(path.join(folder, uid), { mode: 0o755 })
/**
 * @param {string} uid
 * @param {object} [changes] of the hello
 */
async function agentOf (uid, changes = {}) {
  const socket = net.connect({ path: socketOf(uid) })
  await once(socket, 'connect')
  socket.write(line(hello(changes)) + '\n' + line(frame()) + '\n')
  return socket
}

describe('an exporter for all pods of a node', () => {
  /** @type {Awaited<ReturnType<typeof startExporter>>} */
  let exporter
  beforeEach(async () => {
    podStarts(ONE)
    exporter = await startExporter({ socketDir: folder })
  })
  afterEach(() => exporter.stop())
  const targets = async () => (await exporter.get('/api/v1/targets')).json()

  it('recognizes a pod by its folder, and finds later pods', async () => {
    const first = await agentOf(ONE, { pod: { name: 'shop-a', namespace: 'default' } })
    podStarts(OTHER)
    await eventually(() => fs.existsSync(socketOf(OTHER)), Boolean)
    const second = await agentOf(OTHER, { startedAtUnixMs: 5, pod: { uid: OTHER } })
    const both = await eventually(targets, all => all.length === 2)
    expect(both.map(({ target, pod }) => [target, pod])).toEqual([
      ['api', { uid: ONE, name: 'shop-a', namespace: 'default' }], ['api-2', { uid: OTHER }]
    ])
    expect(await exporter.metrics()).toMatch(
      new RegExp(`memwatch_target_pod_info{.*k8s_pod_name="shop-a",k8s_pod_uid="${ONE}"`)
    )
    first.destroy()
    second.destroy()
  })

  it('accepts any user of a pod, and no user can claim another pod', async () => {
    expect(fs.statSync(socketOf(ONE)).mode & 0o777).toBe(0o666)
    const liar = await agentOf(ONE, { pod: { uid: OTHER } })
    await eventually(exporter.metrics, text => text.includes('reason="wrong_pod"} 1'))
    expect(await targets()).toEqual([])
    liar.destroy()
  })

  it('limits a pod to 64 connections and 64 targets', async () => {
    const sockets = []
    for (let pid = 1; pid <= 64; pid++) {
      sockets.push(await agentOf(ONE, { pid, name: `app-of-${pid}` }))
    }
    await eventually(() => exporter.exporter.targets.length, count => count === 64)
    const refused = net.connect({ path: socketOf(ONE) })
    await once(refused, 'close')
    sockets[0].destroy() // The target of the pod remains for a while.
    await eventually(() => exporter.exporter.state.connections, count => count === 63)
    const next = await agentOf(ONE, { pid: 65, name: 'one-more' })
    await eventually(exporter.metrics, text => text.includes('reason="too_many_targets"} 1'))
    podStarts(OTHER)
    await eventually(() => fs.existsSync(socketOf(OTHER)), Boolean)
    const other = await agentOf(OTHER, { pid: 66, name: 'other' })
    await eventually(() => exporter.exporter.targets.length, count => count === 65)
    for (const socket of [...sockets, next, other]) socket.destroy()
  })

  it('removes its sockets when it stops', async () => {
    await exporter.stop()
    expect(fs.existsSync(socketOf(ONE))).toBe(false)
  })
})

describe('ended pods', () => {
  let nowMs = 0
  /** @type {PodSockets} */
  let pods
  let listener
  const failures = []
  beforeEach(async () => {
    nowMs = 0
    failures.length = 0
    listener = new Listener({ open: () => 'overloaded', reject: () => {} })
    pods = new PodSockets({
      listener,
      folder,
      now: () => nowMs,
      onFailure: (uid, error) => failures.push([uid, error.message])
    })
    await pods.start()
  })
  afterEach(async () => {
    await pods.stop()
    await listener.close()
  })

  it('their folders are removed after an hour without connection, and watched again', async () => {
    podStarts(ONE)
    await pods.look()
    nowMs = HOUR_MS
    await pods.look()
    expect(fs.existsSync(socketOf(ONE))).toBe(true)
    nowMs++
    await pods.look()
    expect([fs.existsSync(path.join(folder, ONE)), pods.pods]).toEqual([false, []])
    podStarts(ONE)
    await pods.look()
    expect(pods.pods).toEqual([ONE])
  })

  it('their folders stay during a connection, and other files are never removed', async () => {
    podStarts(ONE)
    podStarts(OTHER)
    fs.writeFileSync(path.join(folder, OTHER, 'theirs'), '')
    await pods.look()
    const agent = net.connect({ path: socketOf(ONE) })
    await once(agent, 'connect')
    await eventually(
      () => listener.connections,
      count => count === 1
    )
    nowMs = 2 * HOUR_MS
    await pods.look()
    expect([fs.existsSync(socketOf(ONE)), fs.readdirSync(path.join(folder, OTHER))]).toEqual([
      true,
      ['theirs']
    ])
    agent.destroy()
  })

  it('other names, files and links are ignored', async () => {
    fs.mkdirSync(path.join(folder, 'lost+found'))
    fs.writeFileSync(path.join(folder, ONE), '')
    fs.symlinkSync(os.tmpdir(), path.join(folder, OTHER))
    await pods.look()
    expect(pods.pods).toEqual([])
  })

  it('a folder without a possible socket is reported once, and tried again', async () => {
    podStarts(ONE)
    fs.mkdirSync(socketOf(ONE))
    await pods.look()
    await pods.look()
    expect(failures).toEqual([[ONE, expect.stringContaining('is not a socket')]])
    fs.rmdirSync(socketOf(ONE))
    await pods.look()
    expect(pods.pods).toEqual([ONE])
  })
})
