'use strict'

const path = require('node:path')
const { fetchPackage } = require('./fetch-package')

/**
 * Fetches a Node.js of an exact version, from the npm package that contains its binary.
 * @param {string} version
 * @returns {string} path of the binary
 * @throws {Error} if npm cannot fetch it
 */
const fetchNode = version =>
  fetchPackage(
    `node-${process.platform}-${process.arch}`,
    version,
    'bin/node',
    { folder: path.join('nodes', version) }
  )

/** Version of Node.js that leaks in Blob.stream() (nodejs/node#63574), for test/integration. */
const LEAKY_NODE = '24.17.0'

module.exports = { LEAKY_NODE, fetchNode }
