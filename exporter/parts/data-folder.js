'use strict'

/** Reports problems of --data-dir that do not prevent the start of the exporter. */
class DataFolderPart {
  name = 'data folder'

  /** @param {import('../exporter').Exporter} exporter */
  start ({ config: { dataFolder }, log }) {
    if (dataFolder?.unlocked) {
      log.warn(dataFolder.unlocked, 'data folder not locked: a second exporter could use it')
    }
    const unreadable = dataFolder?.quarantine.report()
    if (unreadable) log.warn(unreadable, 'unreadable files moved aside')
  }
}

module.exports = { DataFolderPart }
