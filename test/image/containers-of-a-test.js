'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

/** User of the image. */
const UID = 65532

/**
 * Containers and folders of one test.
 * @param {import('../support/containers').ContainerStore} store
 */
function fixtures (store) {
  /** @type {Set<string>} */
  const ids = new Set()
  /** @type {Set<string>} */
  const folders = new Set()
  /** @type {Set<string>} */
  const volumes = new Set()
  return {
    /** A folder like a volume of the image, owned by its user and group. */
    folder () {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-volume-'))
      folders.add(folder)
      fs.chownSync(folder, UID, UID)
      fs.chmodSync(folder, 0o2775)
      return folder
    },
    /**
     * A volume created by the first mount, with the owner from the image.
     * @returns {Promise<string>} its name
     */
    async volume () {
      const name = `memwatch-test-${process.pid}-${volumes.size}`
      volumes.add(name)
      return name
    },
    /**
     * @param {string[]} args of podman run
     * @param {RegExp} ready text of its output once it is ready
     * @returns {Promise<{ id: string }>}
     */
    async start (args, ready) {
      const id = await store.podman('run', '--detach', ...args)
      ids.add(id)
      for (const deadline = Date.now() + 30_000; ;) {
        const { stdout, stderr } = await store.tryPodman('logs', id)
        if (ready.test(stdout + stderr)) return { id }
        const running = await store.podman('inspect', '--format', '{{.State.Running}}', id)
        if (running !== 'true' || Date.now() > deadline) {
          throw new Error(`${args.join(' ')} did not say ${ready}:\n${stdout}${stderr}`)
        }
        await new Promise(resolve => setTimeout(resolve, 100))
      }
    },
    async remove () {
      for (const id of ids) await store.podman('rm', '--force', '--time', '0', id)
      ids.clear()
      for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true })
      folders.clear()
      for (const volume of volumes) await store.tryPodman('volume', 'rm', '--force', volume)
      volumes.clear()
    }
  }
}

module.exports = { fixtures }
