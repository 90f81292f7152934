'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: {}, label: 'any Node.js' },
  fixed: { packages: {}, label: 'without the race' },
  expect: ['js-heap-leak'],
  culprit: /handle|race/,
  load: '400 answers a second',
  limitMib: 1024,
  app ({ fixed, perSecond }) {
    const shutdown = new Promise(() => {})
    const query = async n => ({ n, rows: Array.from({ length: 100 }, (_, row) => ({ row })) })
    async function handle (n) {
      if (fixed) await query(n)
      else await Promise.race([query(n), shutdown])
    }
    perSecond(400, handle)
  }
}
