'use strict'

const { ConfigError } = require('../config')
const { Recorder } = require('../recording/recorder')

/** Writes all lines of agents to the file of --record. */
class RecordingPart {
  name = 'recording'
  /** @type {Recorder | undefined} */
  #recorder

  /**
   * @param {import('../exporter').Exporter} exporter
   * @throws {ConfigError} if the file cannot be opened
   */
  start (exporter) {
    const { config: { record, command }, log } = exporter
    if (!record) return
    const recorder = this.#recorder = openRecorder(record, {
      command,
      onError: error => log.error(error, `recording to ${record} failed and has ended`)
    })
    /** @type {Map<symbol, ReturnType<Recorder['session']>>} */
    const sessions = new Map()
    exporter.on('session', (session, hello) => sessions.set(session, recorder.session(hello)))
    exporter.on('line', (session, line) => sessions.get(session)?.line(line))
    exporter.on('hangup', session => {
      sessions.get(session)?.closed()
      sessions.delete(session)
    })
  }

  /** @param {import('@memwatch/engine/recording/format').End} [end] */
  async stop (end) {
    await this.#recorder?.stop(end)
  }
}

/**
 * @param {string} file
 * @param {ConstructorParameters<typeof Recorder>[1]} options
 * @throws {ConfigError}
 */
function openRecorder (file, options) {
  try {
    return new Recorder(file, options)
  } catch (error) {
    const { message } = /** @type {Error} */ (error)
    throw new ConfigError(`--record: cannot write ${file}: ${message}`)
  }
}

module.exports = { RecordingPart }
