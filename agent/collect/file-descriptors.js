'use strict'

const { readFileSync, readdirSync, statSync } = require('../primordials')
const { isTemporary } = require('../read-file')

/** Not every frame, and not in the same one as other dear readings. */
const EVERY_FRAMES = 5
const TURN = 1

/** @returns {import('./collector').Collector} */
function fileDescriptors () {
  let closed = process.platform !== 'linux'
  /** @type {number | undefined} */
  let most
  /** Linux 6.2 and later say how many there are as the folder's size. @type {boolean | undefined} */
  let sizeTells
  const list = () => readdirSync('/proc/self/fd').length - 1 // less the one that reads the folder
  const count = () => {
    if (sizeTells === false) return list()
    const { size } = statSync('/proc/self/fd')
    sizeTells ??= size > 0 && size === list()
    return sizeTells ? size : list()
  }
  return {
    fields: ['openFileDescriptors', 'maxFileDescriptors'],
    read (values, tick) {
      if (closed || (most !== undefined && tick.count % EVERY_FRAMES !== TURN)) return
      try {
        values.openFileDescriptors = count()
        most ??= Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1])
        if (most > 0) values.maxFileDescriptors = most
      } catch (error) {
        closed = !isTemporary(error)
      }
    }
  }
}

module.exports = { fileDescriptors }
