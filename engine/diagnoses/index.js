'use strict'

/**
 * All diagnoses, causes before symptoms: of two confirmed diagnoses, the earlier one is primary.
 * Problems that kill the process come first, then problems that cost time or memory, then
 * opportunities.
 * @type {readonly import('./define-diagnosis').Diagnosis[]}
 */
const diagnoses = Object.freeze([
  require('./context-leak'),
  require('./resource-leak'),
  require('./js-heap-leak'),
  require('./buffer-pool-pinning'),
  require('./native-memory-leak'),
  require('./heap-limit-thrash'),
  require('./container-limit-mismatch'),
  require('./array-buffer-pile-up'),
  require('./semi-space-starvation'),
  require('./allocator-fragmentation'),
  require('./event-loop-blocked'),
  require('./cpu-throttling'),
  require('./oversized-heap'),
  require('./idle-heap-not-returned'),
  require('./pointer-compression-candidate')
])

module.exports = { diagnoses }
