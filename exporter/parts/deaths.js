'use strict'

const { findCase } = require('@memwatch/engine/verdicts/case')

/**
 * Watches for deaths. Emits `death` (death, target, packed last minutes), `alive` (id of a
 * retracted death), and `lives` (target) if a process is alive after its goodbye. For a heap
 * snapshot that V8 wrote before a death, it emits `analysis` (target, file) and `holders` (target,
 * death).
 */
class DeathsPart {
  name = 'deaths'
  /** @type {import('../exporter').Exporter | undefined} */
  #exporter

  get state () {
    if (!this.#exporter) return { exits: [], deaths: [], silent: [] }
    const { deathRegistry, deathWatch, targets } = this.#exporter
    return {
      exits: deathRegistry.exits(targets),
      deaths: deathRegistry.lastOfEach,
      silent: targets.flatMap(target => {
        const cause = deathWatch.silenceOf(target)
        return cause ? [{ target, cause }] : []
      })
    }
  }

  /** @param {import('../exporter').Exporter} exporter */
  start (exporter) {
    const { deathRegistry, deathSnapshots, deathWatch } = this.#exporter = exporter
    deathWatch.on('death', (death, lastMinutes, target, folders) => {
      exporter.emit('death', death, target, deathRegistry.add(death, lastMinutes))
      if (death.reason === 'clean') return
      deathSnapshots.add(target, folders, {
        onStart: file => exporter.emit('analysis', target, file),
        onEnd: holders => {
          deathRegistry.explain(death.id, holders)
          if (holders.piles.length > 0) findCase(target).holders = holders
          exporter.emit('holders', target, death)
        }
      })
    })
    // A profile that was running when its process died becomes complete only after the death.
    exporter.on('captured', (_, target) => {
      const id = deathWatch.deathOf(target)
      if (id !== undefined) deathRegistry.point(id, target)
    })
    deathWatch.on('alive', id => {
      deathRegistry.retract(id)
      exporter.emit('alive', id)
    })
    deathWatch.on('lives', target => exporter.emit('lives', target))
    deathWatch.start()
  }

  /** Resolves when the process of each goodbye is known to be gone. */
  async drained () {
    await this.#exporter?.deathWatch.settled()
  }

  stop () {
    this.#exporter?.deathWatch.stop()
    this.#exporter?.deathSnapshots.close()
  }
}

module.exports = { DeathsPart }
