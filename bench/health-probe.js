'use strict'

// Requests the health of an exporter repeatedly, for bench/exporter.js: `forget` restarts the
// measurement, `say` prints the longest answer since then in ms, and ends. It is a process of its
// own, so that it does not measure its parent.
/**
 * Pause between requests: the exporter answers one address a hundred times per second, including
 * scrapes.
 */
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
