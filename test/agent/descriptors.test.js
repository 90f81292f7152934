'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const {
  NODES,
  versionOf,
  environment,
  startCollector,
  spawnBounded,
  spawnWatched
} = require('../support/agent-collector')
const { OwnDescriptor, LostDescriptor } = require('../../agent/own-descriptor')
const { kernelFiles } = require('../../agent/read-file')

/** Upper bound of descriptors, including the socket. */
const MOST_HELD = 6
const WORKERS = 20
const QUICK = { MEMWATCH_INTERVAL_SECONDS: '0.1' }

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-descriptors-'))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/**
 * @param {string} name
 * @param {string} [content]
 * @returns {string} its path
 */
function file (name, content = '') {
  const at = path.join(folder, name)
  fs.writeFileSync(at, content)
  return at
}

describe('a descriptor that the app closed', () => {
  const own = file('own', 'of the agent')
  const others = file('others', 'of the app')

  /** An OwnDescriptor whose number now belongs to another file. */
  function lost () {
    const fd = fs.openSync(own, 'r+')
    const descriptor = new OwnDescriptor(fd)
    fs.closeSync(fd)
    expect(fs.openSync(others, 'r+')).toBe(fd)
    return { descriptor, fd }
  }

  it('is read and written while its number belongs to the agent', () => {
    const descriptor = new OwnDescriptor(fs.openSync(own, 'r+'))
    const buffer = Buffer.alloc(64)
    expect(descriptor.read(buffer, 64, 0)).toBe('of the agent'.length)
    expect(descriptor.write('OF')).toBe(2)
    expect(descriptor.write(Buffer.from('xxof'), 2, 2)).toBe(2)
    descriptor.close()
    expect(descriptor.isOwn()).toBe(false)
    expect(() => descriptor.read(buffer, 64, 0)).toThrow(LostDescriptor)
  })

  it('is not read, written or closed once another file has its number', () => {
    const { descriptor, fd } = lost()
    expect(() => descriptor.read(Buffer.alloc(64), 64, 0)).toThrow(LostDescriptor)
    expect(() => descriptor.write('frame')).toThrow(LostDescriptor)
    descriptor.close()
    expect(fs.readFileSync(fd, 'utf8')).toBe('of the app')
    fs.closeSync(fd)
  })

  it('is opened again if it is a kernel file, and the other file stays open', () => {
    const files = kernelFiles()
    const probe = fs.openSync(own, 'r')
    fs.closeSync(probe) // The kernel assigns this number to the next file.
    files.readKept('/proc/self/statm')
    fs.closeSync(probe)
    const fd = fs.openSync(others, 'r')
    expect(fd).toBe(probe)
    expect(files.readKept('/proc/self/statm')).toMatch(/^\d+ \d+ \d+ /)
    expect(files.readKept('/proc/self/statm')).toMatch(/^\d+ \d+ \d+ /)
    files.close()
    expect(fs.readFileSync(fd, 'utf8')).toBe('of the app')
    fs.closeSync(fd)
  })
})

/** Prints the largest number of open descriptors over 30 frames. */
const COUNTS_ITS_DESCRIPTORS = `
  const { readdirSync } = require('fs')
  let most = 0
  const counting = setInterval(() => { most = Math.max(most, readdirSync('/proc/self/fd').length) }, 3)
  setTimeout(() => { clearInterval(counting); console.log(most) }, 3200)`

/**
 * Starts workers whose descriptors Node.js does not close for them, and terminates them at a
 * SIGUSR2.
 */
const TERMINATES_WORKERS = `
  const { Worker } = require('worker_threads')
  const { readdirSync } = require('fs')
  const count = () => readdirSync('/proc/self/fd').length
  const told = new Promise(resolve => process.once('SIGUSR2', resolve))
  setTimeout(async () => {
    const before = count()
    const workers = Array.from({ length: ${WORKERS} }, () =>
      new Worker('setInterval(() => {}, 1000)', { eval: true, trackUnmanagedFds: false }))
    await told
    await Promise.all(workers.map(worker => worker.terminate()))
    console.log(count() - before)
  }, 600)`

/**
 * Closes the agent's descriptors as soon as it has some, and opens files that get their numbers.
 */
const CLOSES_OTHERS = `
  const fs = require('fs')
  let turns = 0
  const waiting = setInterval(() => {
    if (++turns < 12) return
    clearInterval(waiting)
    for (const fd of fs.readdirSync('/proc/self/fd')) {
      try { if (Number(fd) > 2 && /^(socket:|\\/proc\\/|\\/sys\\/)/.test(fs.readlinkSync('/proc/self/fd/' + fd))) fs.closeSync(Number(fd)) } catch {}
    }
    const own = Array.from({ length: 8 }, () => fs.openSync(process.argv[2], 'a'))
    console.log(own.length)
    setInterval(() => {}, 1000)
  }, 30)`

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  /** @type {Awaited<ReturnType<typeof startCollector>>} */
  let collector
  beforeEach(async () => { collector = await startCollector() })
  afterEach(() => collector.stop())

  it(`the agent holds at most ${MOST_HELD} descriptors`, async () => {
    const [plain, watched] = await Promise.all([
      spawnBounded(node, ['-e', COUNTS_ITS_DESCRIPTORS]).ended,
      spawnWatched({
        node,
        args: ['-e', COUNTS_ITS_DESCRIPTORS],
        socket: collector.address,
        env: QUICK
      }).ended
    ])
    expect(collector.connections[0].frames.length).toBeGreaterThan(10)
    expect(Number(watched.stdout) - Number(plain.stdout)).toBeLessThanOrEqual(MOST_HELD)
  })

  it('a terminated worker leaves no descriptor open, even if untracked by Node.js', async () => {
    const { child, ended } = spawnWatched({
      node,
      args: [file('workers.js', TERMINATES_WORKERS)],
      socket: collector.address,
      env: QUICK,
      timeoutMs: 60_000
    })
    await collector.until(
      all => all.filter(one => one.hello?.threadId > 0 && one.frames.length > 0).length === WORKERS,
      50_000
    )
    child.kill('SIGUSR2')
    const { code, stdout } = await ended
    expect(code).toBe(0)
    // The main thread may be scanning its memory map at this moment.
    expect(Number(stdout)).toBeLessThanOrEqual(1)
  }, 70_000)

  it('the agent leaves files alone that get the numbers of its closed descriptors', async () => {
    const target = file(`target-${path.basename(collector.address)}-${process.hrtime()[1]}`)
    const { child, ended, said } = spawnWatched({
      node,
      args: [file('closes.js', CLOSES_OTHERS), target],
      socket: collector.address,
      env: QUICK
    })
    await said('8\n')
    const { frames } = await collector.until(([, second]) => second?.frames.length >= 12 && second)
    child.kill()
    expect(await ended).toMatchObject({ code: null, signal: 'SIGTERM', stderr: '' })
    expect(fs.readFileSync(target, 'utf8')).toBe('')
    expect(frames.every(({ values }) => values.rssAnonBytes > 0)).toBe(true)
  })

  it('a capture runs to its end even if the app makes JSON throw', async () => {
    const address = path.join(folder, `${path.basename(node)}-${process.hrtime()[1]}.sock`)
    /** @type {any[]} */
    const lines = []
    const server = net.createServer(socket => {
      let text = ''
      socket.setEncoding('utf8').on('error', () => {}).on('data', chunk => {
        text += chunk
        const whole = text.split('\n')
        text = /** @type {string} */ (whole.pop())
        for (const line of whole) {
          const message = JSON.parse(line)
          lines.push(message)
          if (message.type === 'hello') {
            socket.write(
              `${JSON.stringify({ v: 1, type: 'command', id: 'one', command: 'capture', args: { kind: 'cpu_profile', seconds: 0.3 } })}\n`
            )
          }
        }
      })
    })
    await new Promise(resolve => server.listen(address, () => resolve(undefined)))
    try {
      const end = await spawnBounded(
        node,
        [
          '-r',
          require.resolve('../../agent'),
          '-e',
          `
        JSON.stringify = JSON.parse = () => { throw new Error('of the app') }
        setTimeout(() => { console.log('end') }, 1500)`
        ],
        { env: environment({ ...QUICK, MEMWATCH_SOCKET: address }) }
      ).ended
      expect(end).toMatchObject({ code: 0, stdout: 'end\n', stderr: '' })
      expect(lines.find(({ type }) => type === 'answer')).toMatchObject({
        id: 'one',
        ok: true,
        parts: { profile: expect.any(Number) }
      })
    } finally {
      server.close()
    }
  })
})
