'use strict'

const fs = require('node:fs')
const path = require('node:path')
const {
  KINDS, cutVersion, findVersion, readChangelog
} = require('../../scripts/release/changelog')
const { REPOSITORY, version } = require('../../scripts/packages')

const text = fs.readFileSync(path.join(__dirname, '../../CHANGELOG.md'), 'utf8')
const { versions: [unreleased, ...released], links } = readChangelog(text)

describe('CHANGELOG.md', () => {
  it('begins with Unreleased, followed by the version of the packages', () => {
    expect(unreleased).toMatchObject({ name: 'Unreleased', date: undefined })
    expect(released[0].name).toBe(version)
  })

  it('has versions and dates from the newest to the oldest', () => {
    const numbers = released.map(({ name }) =>
      name.split(/[.-]/).slice(0, 3).map(number => number.padStart(6, '0')).join('.'))
    expect(numbers).toEqual(numbers.toSorted().reverse())
    expect(new Set(released.map(({ name }) => name)).size).toBe(released.length)
    const dates = released.map(({ date }) => date ?? 'none')
    expect(dates.filter(date => Number.isNaN(Date.parse(date)) || date.length !== 10)).toEqual([])
    expect(dates).toEqual(dates.toSorted().reverse())
  })

  it('has a link for each version, and no other', () => {
    expect(Object.keys(links)).toEqual([unreleased, ...released].map(({ name }) => name))
    expect(links.Unreleased).toBe(`${REPOSITORY}/compare/v${released[0].name}...HEAD`)
    released.forEach(({ name }, i) => {
      const previous = released[i + 1]
      expect(links[name]).toBe(
        previous
          ? `${REPOSITORY}/compare/v${previous.name}...v${name}`
          : `${REPOSITORY}/releases/tag/v${name}`
      )
    })
  })

  it('groups changes by kind, each kind once and none empty', () => {
    for (const { name, text: section, changes } of [unreleased, ...released]) {
      const headings = [...section.matchAll(/^### (.*)$/gm)].map(([, heading]) => heading)
      expect({ [name]: headings }).toEqual({
        [name]: KINDS.filter(kind => headings.includes(kind))
      })
      for (const heading of headings) expect(changes.map(({ kind }) => kind)).toContain(heading)
    }
    expect(released[0].changes.length).toBeGreaterThan(10)
  })

  it('has lines of at most 100 columns', () => {
    expect(text.split('\n').filter(line => line.length > 100)).toEqual([])
  })
})

describe('a release', () => {
  const before = [
    '# Changelog', '', '## [Unreleased]', '', '### Fixed', '', '- One', '  and two.', '- Three.', '',
    '## [0.1.0] - 2026-01-01', '', '### Added', '', '- All.', '',
    `[Unreleased]: ${REPOSITORY}/compare/v0.1.0...HEAD`,
    `[0.1.0]: ${REPOSITORY}/releases/tag/v0.1.0`, ''
  ].join('\n')

  it('contains the unreleased changes', () => {
    const after = cutVersion(before, '0.2.0', '2026-02-03')
    const { versions, links: next } = readChangelog(after)
    expect(versions.map(({ name, date, changes }) => ({ name, date, count: changes.length })))
      .toEqual([
        { name: 'Unreleased', date: undefined, count: 0 },
        { name: '0.2.0', date: '2026-02-03', count: 2 },
        { name: '0.1.0', date: '2026-01-01', count: 1 }
      ])
    expect(findVersion(after, '0.2.0').changes).toEqual([
      { kind: 'Fixed', text: 'One and two.' },
      { kind: 'Fixed', text: 'Three.' }
    ])
    expect(Object.entries(next)).toEqual([
      ['Unreleased', `${REPOSITORY}/compare/v0.2.0...HEAD`],
      ['0.2.0', `${REPOSITORY}/compare/v0.1.0...v0.2.0`],
      ['0.1.0', `${REPOSITORY}/releases/tag/v0.1.0`]
    ])
    expect(() => cutVersion(after, '0.3.0', '2026-02-04')).toThrow('nothing is unreleased')
  })

  it('refuses a changelog without a section', () => {
    expect(() => findVersion(before, '9.9.9')).toThrow('no section for 9.9.9')
  })
})
