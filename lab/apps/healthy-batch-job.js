'use strict'

// Every fifteen seconds, a worker loads a batch of records, works through it and drops it. The live
// heap grows tenfold while a batch is loaded, and then falls back to the same level.
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const RECORDS = 150_000
const PAGE = 1000
const EVERY_MS = 15_000

/** @typedef {{ id: number, customer: string, amounts: number[], note: string }} Row */

let batches = 0
const run = appRun({ work: 'records', figures: () => ({ batches }) })

/**
 * Returns one page of records, parsed from text as a database driver does.
 * @param {number} from
 * @returns {Row[]}
 */
function page (from) {
  const text = JSON.stringify(
    Array.from({ length: PAGE }, (_, i) => ({
      id: from + i,
      customer: `customer ${(from + i) % 5000}`,
      amounts: Array.from({ length: 20 }, (_, n) => n + i / 7),
      note: `record ${from + i} of this batch`
    }))
  )
  return JSON.parse(text)
}

async function batch () {
  /** @type {Row[]} */
  const rows = []
  for (let from = 0; from < RECORDS; from += PAGE) {
    rows.push(...page(from))
    await wait(20)
  }
  /** @type {Map<string, number>} */
  const totals = new Map()
  for (const { customer, amounts } of rows) {
    totals.set(
      customer,
      (totals.get(customer) ?? 0) + amounts.reduce((sum, amount) => sum + amount)
    )
  }
  run.served(rows.length)
  batches++
  return totals.size
}

async function main () {
  for (;;) {
    const began = performance.now()
    await batch()
    await wait(Math.max(0, EVERY_MS - (performance.now() - began)))
  }
}

main()
