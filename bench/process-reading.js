'use strict'

const fs = require('node:fs')

/** Memory of another process, by proc(5). All functions throw after its end. */

/**
 * @param {number} pid
 * @returns {number} bytes
 */
const rssOf = pid =>
  Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) * 1024
/**
 * @param {number} pid
 * @returns {number}
 */
const threadsOf = pid => fs.readdirSync(`/proc/${pid}/task`).length
/**
 * @param {number} pid
 * @returns {number}
 */
const descriptorsOf = pid => fs.readdirSync(`/proc/${pid}/fd`).length

module.exports = { descriptorsOf, rssOf, threadsOf }
