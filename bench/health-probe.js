'use strict'

// Asks an exporter for its health again and again, for bench/exporter.js: `forget` begins anew,
// `say` tells how many ms an answer took at most since then, and ends. A process of its own, so
// that what it measures is not its parent.
/** The exporter answers an address a hundred times a second, scrapes included. */
const PAUSE_MS = 12
let longestMs = 0
process.on('message', message => {
  if (message === 'forget') longestMs = 0
  else process.send?.(longestMs, undefined, undefined, () => process.exit())
})

async function main () {
  for (;;) {
    const began = performance.now()
    const response = await fetch(`${process.argv[2]}/-/healthy`)
    if (await response.text() !== 'healthy\n') throw new Error(`/-/healthy said ${response.status}`)
    longestMs = Math.max(longestMs, performance.now() - began)
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
  }
}
main()
