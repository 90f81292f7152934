'use strict'

/** Runs all cases in the virtual machine, and prints each result on one line. */

const { CASES } = require('./cgroup2-cases')

async function main () {
  for (const { title, major, test } of CASES) {
    const result = { title, node: major }
    try {
      Object.assign(result, { known: await test() })
    } catch (error) {
      Object.assign(result, { error: /** @type {Error} */ (error).stack?.slice(0, 3000) })
    }
    console.log(`\ncase: ${JSON.stringify(result)}`)
  }
}

main()
