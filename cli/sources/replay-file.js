'use strict'

const { replay } = require('@memwatch/engine/recording/replay')
const { openInput } = require('./open-input')

/**
 * @typedef {NonNullable<Parameters<typeof replay>[1]>} ReplayOptions
 */

/**
 * Judges the recording in a file.
 * @param {string} file path, or - for stdin
 * @param {ReplayOptions & { onProgress?: (share: number) => void }} [options] onProgress: called
 *   with the share of the file that was read
 * @returns {ReturnType<typeof replay>}
 * @throws {import('./define-source').SourceError} if the file cannot be read; RecordingError if it
 *   is not a recording
 */
async function replayFile (file, { onProgress, ...options } = {}) {
  return replay(await openInput(file, { onProgress }), options)
}

module.exports = { replayFile }
