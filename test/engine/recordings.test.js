'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { gunzipSync } = require('node:zlib')
const { recordings, baselineOf, isRight, FILE, QUOTA } = require('../../scripts/baseline')
const { diagnoses } = require('../../engine/diagnoses')

/** @type {Record<string, import('../../scripts/baseline').Baseline>} */
const baseline = JSON.parse(fs.readFileSync(FILE, 'utf8'))
const names = recordings()

/** Replaces shares of time in a text, which depend on the machine. */
const SHARES =
  /([\d.]+) % (?:of (?:the time|wall time|the CPU time|its periods|the periods|the seconds)|away)/g

describe('recordings of real runs', () => {
  it('are all in the baseline, and each file is small', () => {
    expect(Object.keys(baseline).sort()).toEqual(names)
    const bytes = names.reduce(
      (sum, name) => sum + fs.statSync(path.join(path.dirname(FILE), name)).size,
      0
    )
    expect(bytes).toBeLessThan(20 * 2 ** 20)
  })
  it('name no machine', () => {
    const folder = path.dirname(FILE)
    const named = names.filter(name => {
      const text = gunzipSync(fs.readFileSync(path.join(folder, name))).toString()
      const isKnown = (/** @type {string} */ place) =>
        ['"lab"', '"/srv/memwatch/agent"'].includes(place)
      const places = [...text.matchAll(/"(?:host|agentFolder)":("[^"]*")/g)]
      return places.some(([, place]) => !isKnown(place)) || /"\/[^"]*\/lab\/apps\//.test(text)
    })
    expect(named).toEqual([])
  })
  it('cover every problem, most of them also fixed, and healthy apps', () => {
    const expected = Object.values(baseline).map(({ expected }) => expected)
    for (const { id, opportunity } of diagnoses) if (!opportunity) expect(expected).toContain(id)
    expect(names.filter(name => name.includes('-fixed')).length).toBeGreaterThan(10)
    expect(names.filter(name => name.includes('-healthy-')).length).toBeGreaterThan(15)
  })
  it('are judged right, including opportunities', () => {
    expect(names.filter(name => !isRight(name, baseline[name]))).toEqual([])
  })
  it.each(names)('%s has its baseline verdict, and each fix follows the finding', async name => {
    /** @type {string[]} */
    const contradictions = []
    const seen = await baselineOf(
      name,
      ({ diagnosis, summary, evidence, impact, fix: [first] }) => {
        for (const text of [summary, impact ?? '', ...evidence.map(({ text }) => text)]) {
          for (const [told, percent] of text.matchAll(SHARES)) {
            if (Number(percent) > 100) contradictions.push(`${diagnosis}: ${told}`)
          }
        }
        const [predicted] = first?.predicted ?? []
        if (!predicted) return
        const isEvidence = evidence.some(
          ({ signal, value }) => signal === predicted.signal && value === predicted.from
        )
        if (!isEvidence) {
          contradictions.push(`${diagnosis}: ${predicted.signal} from ${predicted.from}`)
        }
      }
    )
    expect(seen).toEqual(baseline[name])
    expect(contradictions).toEqual([])
  })
  it('of healthy apps, and of apps fixed in code, never have a confirmed verdict', () => {
    const quiet = Object.entries(baseline).filter(
      ([, { expected, gone }]) => expected === null && gone === null
    )
    expect(quiet.length).toBeGreaterThan(40)
    const counts = (/** @type {string} */ name, /** @type {string} */ id) =>
      id !== QUOTA || !name.includes('@')
    expect(quiet.filter(([name, { ever }]) => ever.some(id => counts(name, id)))).toEqual([])
  })
  it('of apps with the printed fix no longer have its diagnosis', () => {
    const fixed = Object.entries(baseline).filter(([, { gone }]) => gone !== null)
    expect(fixed.length).toBeGreaterThan(10)
    expect(
      fixed.filter(([, { gone, ever }]) => ever.includes(String(gone))).map(([name]) => name)
    ).toEqual([])
  })
  it('of apps with a problem have the right finding in 97 % of cases', () => {
    const ill = Object.entries(baseline).filter(([, { expected }]) => expected !== null)
    expect(ill.filter(([name, one]) => isRight(name, one)).length / ill.length)
      .toBeGreaterThanOrEqual(0.97)
  })
})
