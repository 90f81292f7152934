'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { randomUUID } = require('node:crypto')
const { setTimeout: wait } = require('node:timers/promises')
const { crc32, deflateRawSync } = require('node:zlib')

/**
 * @typedef {import('./stage').Stage} Stage
 *
 * Data that an exporter saved: a file of records of each kind, and its records.
 * @typedef {{ name: string, records: { meta: any, bytes: Buffer }[] }} Segment
 *
 * @typedef {{ folder: string, segments: Segment[] }} Saved
 */

const GIB = 2 ** 30
const HEAD_BYTES = 8
/** Time in which an exporter saves data, and an attack shows its effect. */
const SAVE_WITHIN_MS = 30_000

/**
 * Records of a segment: length and CRC-32 of the body, then the length of the JSON, the JSON,
 * bytes.
 * @param {Buffer} file
 */
function readRecords (file) {
  const records = []
  for (let at = 0; at + HEAD_BYTES < file.length;) {
    const body = file.subarray(at + HEAD_BYTES, at + HEAD_BYTES + file.readUInt32LE(at))
    const end = 4 + body.readUInt32LE(0)
    records.push({
      meta: JSON.parse(body.toString('utf8', 4, end)),
      bytes: Buffer.from(body.subarray(end))
    })
    at += HEAD_BYTES + body.length
  }
  return records
}

/**
 * @param {unknown} meta
 * @param {Buffer} [bytes]
 */
function record (meta, bytes = Buffer.alloc(0)) {
  const json = Buffer.from(JSON.stringify(meta))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(json.length)
  const body = Buffer.concat([length, json, bytes])
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(body.length, 0)
  head.writeUInt32LE(crc32(body), 4)
  return Buffer.concat([head, body])
}

/**
 * Files that a real exporter saved of a real app.
 * @param {Stage} stage whose data folder is copied
 * @param {string} to
 * @returns {Promise<Saved>}
 */
async function saveReal (stage, to) {
  const from = path.join(stage.folder, 'data')
  const isSegment = (/** @type {string} */ name) => name.endsWith('.segment')
  const app = await stage.startApp('short-lived')
  await stage.awaitTarget(app.pid, ({ uptimeSeconds }) => uptimeSeconds >= 8, 60_000)
  app.kill('SIGKILL')
  for (const deadline = Date.now() + SAVE_WITHIN_MS; Date.now() < deadline; await wait(500)) {
    if (fs.readdirSync(from).some(name => name.startsWith('deaths'))) break
  }
  fs.cpSync(from, to, {
    recursive: true,
    filter: file => fs.statSync(file).isDirectory() || isSegment(file)
  })
  const names = fs.readdirSync(to).filter(isSegment)
  return {
    folder: to,
    segments: names.map(name => ({
      name,
      records: readRecords(fs.readFileSync(path.join(to, name)))
    }))
  }
}

/** JSON whose decompressed size is more than a thousand times larger. */
const bomb = () => deflateRawSync(Buffer.alloc(GIB))

const FAMILIES = ['seconds', 'step10', 'step60', 'deaths']
/**
 * The number of the new file is higher than those of the existing files.
 * @param {string} family
 * @param {number} [number]
 */
const segmentName = (family, number = 900_000) =>
  `${family}-${String(number).padStart(15, '0')}.segment`
/**
 * @param {string} folder
 * @param {string} id
 */
const captureFolder = (folder, id = randomUUID()) => {
  const made = path.join(folder, 'captures', id)
  fs.mkdirSync(made, { recursive: true, mode: 0o700 })
  return made
}

/**
 * Contents of a data folder, each for one start of the exporter.
 * @type {Record<string, (folder: string, saved: Saved) => void>}
 */
const TRAPS = {
  'records that are null or lack fields' (folder, { segments }) {
    for (const family of FAMILIES) {
      const known = segments.find(({ name }) => name.startsWith(family))?.records ?? []
      const hollow = known.flatMap(({ meta, bytes }) => [
        record({ ...meta, death: null }, bytes),
        record({ ...meta, death: {} }, bytes),
        record({ type: meta.type, layout: meta.layout, key: meta.key }),
        record(meta)
      ])
      fs.writeFileSync(
        path.join(folder, segmentName(family)),
        Buffer.concat([
          record(null),
          record([]),
          record(1),
          ...hollow,
          record({ type: 'death', death: null }),
          record({ type: 'death', death: {} }),
          record({ type: 'retracted', id: null })
        ])
      )
    }
    for (const text of ['null', '[]', '{}', '{"id":"x","parts":null}', '{"parts":[null]}', '1']) {
      fs.writeFileSync(path.join(captureFolder(folder), 'capture.json'), text)
    }
  },
  'records of a MiB that inflate to a GiB' (folder, { segments }) {
    const bytes = bomb()
    for (const family of FAMILIES) {
      const known = segments.find(({ name }) => name.startsWith(family))?.records ?? [
        { meta: { type: 'block', stepSeconds: 60, from: 0, to: 60 }, bytes }
      ]
      const kinds = [...new Map(known.map(one => [one.meta.type, one])).values()]
      fs.writeFileSync(
        path.join(folder, segmentName(family)),
        Buffer.concat(
          kinds.map(({ meta }) =>
            record(
              meta.death ? { ...meta, death: { ...meta.death, id: randomUUID() } } : meta,
              bytes
            )
          )
        )
      )
    }
  },
  'files of a GiB' (folder) {
    for (const family of FAMILIES) truncate(path.join(folder, segmentName(family)))
    truncate(path.join(captureFolder(folder), 'capture.json'))
  },
  'links to endless files and to files outside the folder' (folder) {
    for (const family of FAMILIES) {
      fs.symlinkSync('/dev/zero', path.join(folder, segmentName(family)))
    }
    fs.symlinkSync('/etc/passwd', path.join(folder, segmentName('deaths', 900_001)))
    fs.symlinkSync('/nowhere', path.join(folder, segmentName('seconds', 900_001)))
    fs.symlinkSync('/dev/zero', path.join(captureFolder(folder), 'capture.json'))
  },
  'a link instead of the folder of captures' (folder) {
    const foreign = path.join(folder, '..', 'foreign')
    fs.mkdirSync(path.join(foreign, randomUUID()), { recursive: true })
    fs.writeFileSync(path.join(foreign, randomUUID()), 'somebody’s own')
    fs.symlinkSync(foreign, path.join(folder, 'captures'))
  },
  'pipes, folders and sockets instead of files' (folder) {
    for (const family of FAMILIES) execFileSync('mkfifo', [path.join(folder, segmentName(family))])
    for (const family of FAMILIES) fs.mkdirSync(path.join(folder, segmentName(family, 900_001)))
    execFileSync('mkfifo', [path.join(captureFolder(folder), 'capture.json')])
    fs.mkdirSync(path.join(captureFolder(folder), 'capture.json'))
  },
  'twenty thousand files' (folder) {
    for (let i = 0; i < 10_000; i++) {
      fs.writeFileSync(path.join(folder, segmentName('seconds', 900_000 + i)), '')
    }
    for (let i = 0; i < 10_000; i++) {
      fs.writeFileSync(path.join(folder, segmentName('step60', 910_000 + i)), 'x')
    }
  }
}

/** A file without blocks. @param {string} file */
function truncate (file) {
  fs.writeFileSync(file, '')
  fs.truncateSync(file, GIB)
}

/**
 * Attacks by a data folder that an attacker wrote to.
 * @param {Stage} stage
 */
async function afterStart (stage) {
  const claims = []
  for (const at of ['deaths', 'captures', 'targets', 'diagnoses']) {
    const answer = await stage.api(at).catch(error => ({ status: error.message, text: '' }))
    claims.push({
      text: `/api/v1/${at} answers 200`,
      held: answer.status === 200,
      detail: String(answer.status)
    })
    if (at !== 'deaths' || answer.status !== 200) continue
    const failed = []
    for (const { id } of JSON.parse(answer.text)) {
      const { status } = await stage
        .api(`deaths/${encodeURIComponent(id)}`)
        .catch(error => ({ status: error.message }))
      if (status !== 200 && status !== 404) failed.push(status)
    }
    claims.push({
      text: 'each listed death can be read',
      held: failed.length === 0,
      detail: failed.join()
    })
  }
  for (const path of [
    'targets/short-lived/series?track=rssBytes&seconds=604800',
    'targets/good/series?track=rssBytes&seconds=604800'
  ]) {
    const { status } = await stage.api(path).catch(error => ({ status: error.message }))
    claims.push({
      text: `/api/v1/${path.split('?')[0]} answers`,
      held: status === 200 || status === 404,
      detail: String(status)
    })
  }
  const foreign = path.join(stage.folder, 'foreign')
  if (fs.existsSync(foreign)) {
    claims.push({
      text: 'the target of the link is unchanged',
      held: fs.readdirSync(foreign).length === 2,
      detail: `${fs.readdirSync(foreign).length} of 2 left`
    })
  }
  let saving = ''
  for (
    const deadline = Date.now() + SAVE_WITHIN_MS;
    Date.now() < deadline && !stage.ended && !saving.endsWith(' 1');
    await wait(1000)
  ) {
    const { text } = await stage.scrape().catch(() => ({ text: '' }))
    saving =
      text.split('\n').find(line => line.startsWith('memwatch_exporter_history_saving')) ?? ''
  }
  claims.push({ text: 'the exporter saves histories', held: saving.endsWith(' 1'), detail: saving })
  return { claims }
}

module.exports = { afterStart, saveReal, TRAPS }
