'use strict'

/**
 * All diagnoses, causes before symptoms: of two that are confirmed at once the earlier is the primary one.
 * @type {readonly import('./define-diagnosis').Diagnosis[]}
 */
const diagnoses = Object.freeze([
  require('./js-heap-leak'),
  require('./semi-space-starvation'),
  require('./allocator-fragmentation')
])

module.exports = { diagnoses }
