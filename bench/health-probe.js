'use strict'

// Asks an exporter for its health again and again, for bench/exporter.js: `forget` begins anew, `say` tells how many ms an answer
// took at most since then, and ends. A process of its own, so that what it measures is not its parent.
let longestMs = 0
process.on('message', message => {
  if (message === 'forget') longestMs = 0
  else process.send?.(longestMs, () => process.exit())
})

async function main () {
  for (;;) {
    const began = performance.now()
    await (await fetch(`${process.argv[2]}/-/healthy`)).text()
    longestMs = Math.max(longestMs, performance.now() - began)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
main()
