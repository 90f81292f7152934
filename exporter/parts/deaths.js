'use strict'

/**
 * Watches for deaths. Emits `death` (death, target, its last minutes packed), `alive` (id of a
 * death that was none), and `lives` (target) after a goodbye in the name of a living process.
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
    const { deathRegistry, deathWatch } = this.#exporter = exporter
    deathWatch.on('death', (death, lastMinutes, target) => {
      exporter.emit('death', death, target, deathRegistry.add(death, lastMinutes))
    })
    deathWatch.on('alive', id => {
      deathRegistry.retract(id)
      exporter.emit('alive', id)
    })
    deathWatch.on('lives', target => exporter.emit('lives', target))
    deathWatch.start()
  }

  /** Resolves when the reason of each goodbye is known. */
  async drained () {
    await this.#exporter?.deathWatch.settled()
  }

  stop () {
    this.#exporter?.deathWatch.stop()
  }
}

module.exports = { DeathsPart }
