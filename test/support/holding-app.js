'use strict'

// An app that retains many items in one known way, and writes a heap snapshot. Each test of
// engine/snapshot/ has its way.
//
//   node holding-app.js WAY FILE [LATER] LATER: file of a second snapshot, after the same number of
// further items

const { AsyncLocalStorage } = require('node:async_hooks')
const { EventEmitter } = require('node:events')
const v8 = require('node:v8')

const ITEMS = 500
const SECRET = 'correct horse battery staple'

class Item {
  constructor (n) {
    this.n = n
    this.note = `${SECRET} ${n}`
    this.rows = Array.from({ length: 40 }, (_, row) => row + n / 7)
  }
}

const sessions = new Map()
const findSession = id => sessions.get(id)

class Registry {
  static all = new Set()
}

/** The items of each way are reachable in that way only. */
const ways = {
  'Map of a module' (n) {
    sessions.set(`session ${n}`, new Item(n))
  },
  closure: (() => {
    const pending = []
    const add = n => pending.push(new Item(n))
    return add
  })(),
  listener: (() => {
    const bus = new EventEmitter().setMaxListeners(0)
    return n => {
      const item = new Item(n)
      bus.on('order', () => item)
    }
  })(),
  'listener of an EventTarget': (() => {
    const stopping = new AbortController()
    return n => {
      const item = new Item(n)
      stopping.signal.addEventListener('abort', () => item)
    }
  })(),
  timer (n) {
    const item = new Item(n)
    setTimeout(function retry () { return item }, 3_600_000)
  },
  'pending promise': (() => {
    const stopped = new Promise(() => {})
    return n => {
      const item = new Item(n)
      stopped.then(() => item)
    }
  })(),
  'async function that waits': (() => {
    const ready = new Promise(() => {})
    async function answer (item) {
      await ready
      return item
    }
    return n => { answer(new Item(n)) }
  })(),
  AsyncLocalStorage: (() => {
    const storage = new AsyncLocalStorage()
    return n => storage.run(new Item(n), () => setTimeout(() => {}, 3_600_000))
  })(),
  'one AsyncLocalStorage of two': (() => {
    const trace = new AsyncLocalStorage()
    const storage = new AsyncLocalStorage()
    return n => {
      if (n === 0) trace.enterWith({ id: 'trace' })
      storage.run(new Item(n), () => setTimeout(() => {}, 3_600_000))
    }
  })(),
  'store of the main program': (() => {
    const storage = new AsyncLocalStorage()
    return n => {
      if (n === 0) storage.enterWith({ seen: [] })
      storage.getStore().seen.push(new Item(n))
    }
  })(),
  'handle of native code' (n) {
    const item = new Item(n)
    new MessageChannel().port1.onmessage = () => item
  },
  'exports of a module' (n) {
    module.exports.kept.push(new Item(n))
  },
  interval (n) {
    const item = new Item(n)
    setInterval(function poll () { return item }, 3_600_000)
  },
  'listener on a class of the app': (() => {
    class Basket extends EventEmitter {}
    const basket = new Basket().setMaxListeners(0)
    return n => {
      const item = new Item(n)
      basket.on('paid', () => item)
    }
  })(),
  FinalizationRegistry: (() => {
    const registry = new FinalizationRegistry(() => {})
    const targets = []
    return n => {
      const target = { n }
      targets.push(target)
      registry.register(target, new Item(n))
    }
  })(),
  'static field' (n) {
    Registry.all.add(new Item(n))
  },
  'global variable' (n) {
    globalThis.leaked ??= []
    globalThis.leaked.push(new Item(n))
  },
  'linked list': (() => {
    const queue = { head: /** @type {object | null} */ (null) }
    return n => { queue.head = { item: new Item(n), next: queue.head } }
  })(),
  'shards of a cache': (() => {
    /** @type {Map<number, Item[]>} */
    const shards = new Map()
    return n => {
      if (n < 5) shards.set(n, [])
      shards.get(n % 5)?.push(new Item(n))
    }
  })(),
  'tree without siblings': (() => {
    const tree = { root: null }
    const insert = (node, below, key) => {
      if (node === null) return below
      const side = key % 2 === 0 ? 'left' : 'right'
      node[side] = insert(node[side], below, key >> 1)
      return node
    }
    const leaf = n => ({ item: new Item(n), left: null, right: null })
    return n => { tree.root = insert(tree.root, leaf(n), n * 7919) }
  })(),
  'slice of a large Buffer': (() => {
    const tokens = new Map()
    return n => {
      const message = Buffer.allocUnsafeSlow(16_384).fill(n)
      tokens.set(n, message.subarray(3, 43))
    }
  })(),
  'slices of one large Buffer': (() => {
    const parts = new Map()
    return n => {
      const message = Buffer.allocUnsafeSlow(16_384).fill(n)
      for (let k = 0; k < 4; k++) parts.set(`${n}.${k}`, message.subarray(40 * k, 40 * k + 40))
    }
  })(),
  'WeakMap with keys that live': (() => {
    const notes = new WeakMap()
    const keys = []
    return n => {
      const key = { n }
      keys.push(key)
      notes.set(key, new Item(n))
    }
  })()
}

module.exports = { findSession, Registry, ways, kept: /** @type {Item[]} */ ([]) }

const [, , way, file, later] = process.argv
for (let n = 0; n < ITEMS; n++) ways[way](n)
setImmediate(() => {
  v8.writeHeapSnapshot(file)
  if (!later) process.exit()
  for (let n = ITEMS; n < 2 * ITEMS; n++) ways[way](n)
  setImmediate(() => {
    v8.writeHeapSnapshot(later)
    process.exit()
  })
})
