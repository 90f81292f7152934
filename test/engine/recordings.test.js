'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { recordings, baselineOf, isRight, FILE } = require('../../scripts/baseline')
const { diagnoses } = require('../../engine/diagnoses')

/** @type {Record<string, import('../../scripts/baseline').Baseline>} */
const baseline = JSON.parse(fs.readFileSync(FILE, 'utf8'))
const names = recordings()

/** Shares of a time in a text. */
const SHARES =
  /([\d.]+) % (?:of (?:the time|wall time|the CPU time|its periods|the periods|the seconds)|away)/g

describe('recordings of real runs', () => {
  it('are all in the baseline, and small', () => {
    expect(Object.keys(baseline).sort()).toEqual(names)
    const bytes = names.reduce(
      (sum, name) => sum + fs.statSync(path.join(path.dirname(FILE), name)).size,
      0
    )
    expect(bytes).toBeLessThan(20 * 2 ** 20)
  })
  it('show every problem broken, most of them repaired as well, and healthy apps', () => {
    const expected = Object.values(baseline).map(({ expected }) => expected)
    for (const { id, opportunity } of diagnoses) if (!opportunity) expect(expected).toContain(id)
    expect(names.filter(name => name.includes('-fixed')).length).toBeGreaterThan(10)
    expect(names.filter(name => name.includes('-healthy-')).length).toBeGreaterThan(15)
  })
  it('are judged right, their opportunities as well', () => {
    expect(names.filter(name => !isRight(name, baseline[name]))).toEqual([])
  })
  it.each(names)('%s is judged as it was, and each fix is made from what was found', async name => {
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
  it('of healthy apps, and of those that were repaired in their code, never had anything confirmed', () => {
    const quiet = Object.entries(baseline).filter(
      ([, { expected, gone }]) => expected === null && gone === null
    )
    expect(quiet.length).toBeGreaterThan(40)
    expect(quiet.filter(([, { ever }]) => ever.length > 0).map(([name]) => name)).toEqual([])
  })
  it('of apps that got the fix that was printed no longer have what it was for', () => {
    const fixed = Object.entries(baseline).filter(([, { gone }]) => gone !== null)
    expect(fixed.length).toBeGreaterThan(10)
    expect(
      fixed.filter(([, { gone, ever }]) => ever.includes(String(gone))).map(([name]) => name)
    ).toEqual([])
  })
  it('of ill apps have the right primary finding, 97 of 100', () => {
    const ill = Object.values(baseline).filter(({ expected }) => expected !== null)
    expect(
      ill.filter(({ expected, primary }) => expected === primary).length / ill.length
    ).toBeGreaterThanOrEqual(0.97)
  })
})
