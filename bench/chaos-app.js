'use strict'

/**
 * An app that works a little and executes commands from stdin: exit CODE, throw, heap, memory,
 * block SECONDS.
 */

const kept = []
setInterval(() => { for (let i = 0; i < 2000; i++) kept[i] = { i, text: `row ${i}` } }, 50)

/** @type {Record<string, (argument: number) => void>} */
const orders = {
  exit: code => process.exit(code),
  throw: () => {
    throw new Error('as told')
  },
  heap: () => {
    setInterval(() => {
      for (let i = 0; i < 20_000; i++) kept.push({ i, rows: [i, i, i] })
    }, 100)
  },
  memory: () => {
    setInterval(() => kept.push(Buffer.alloc(2 ** 20, 1)), 20)
  },
  block: seconds => {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end;);
  }
}
process.stdin.setEncoding('utf8').on('data', text => {
  const [order, argument] = String(text).trim().split(' ')
  orders[order](Number(argument))
})
