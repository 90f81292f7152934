'use strict'

const acorn = require('acorn')
const { program } = require('../../cli/memwatch')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { options, clientOptions } = require('../../exporter/config')
const { options: agentOptions } = require('@memwatch/agent/protocol/config')
const { problems } = require('../../exporter/expose/problems')
const { listFiles, readText } = require('../support/repository-files')

/** Words that readers had to look up, and the technical terms that replace them. */
const REPLACED_WORDS = Object.freeze(/** @type {[RegExp, string][]} */ ([
  [/\bmemory groups?\b/i, 'memory cgroup'],
  [/\bforetold\b|\bforetells?\b/i, 'predicted'],
  [/\bgentle\b/i, 'low-overhead'],
  [/\bdear(er|est)?\b/i, 'expensive'],
  [/\bill\b/, 'unhealthy, with a problem'],
  [/\bof then\b/i, 'measured at'],
  [/\b(be|is|are) believed\b/i, 'accepted'],
  [/\b(is|are) had\b/i, 'a verb'],
  [/\bwho(ever)? looks\b/i, 'readers, clients'],
  [/\bwhat is ours\b/i, 'its name'],
  [/\b(a|one|last|next) look\b/i, 'scan, poll, sample'],
  [/\bMind:/, 'the risk, who has it, what to do'],
  [/\bthrift\b/i, 'load shedding']
]))
const HEADLESS = /^(What|How|Of|Where|Who|Whom|Whose|Whether|Which|That which)\b/
const WORDS_OF_A_LONG_SENTENCE = 30
const LONG_SENTENCES_SHARE = 0.02
/** Largest share of long sentences on one page; a page of few sentences may have one. */
const LONG_SENTENCES_OF_A_PAGE = 0.05

/** Markdown without code, comments, tables, headings and addresses. @param {string} text */
const proseOf = text => text
  .replace(/^ *```[\s\S]*?^ *```/gm, '')
  .replace(/<!--[\s\S]*?-->/g, '')
  .split(/\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)/)
  .filter(paragraph => !/^\s*(\||#)/.test(paragraph))
  .map(paragraph => paragraph
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/`[^`]*`/g, 'code')
    .replace(/\s+/g, ' '))

/**
 * @param {string} paragraph
 * @returns {string[]} sentences; a colon or semicolon before a capital letter also ends one
 */
const sentencesOf = paragraph => paragraph
  .split(/(?<=[.!?])\s|(?<=[:;])\s+(?=[A-Z*["])/)
  .filter(sentence => /\w/.test(sentence))

/** @param {string} sentence */
const wordsOf = sentence => sentence.split(/\s+/).filter(word => /\w/.test(word))

/**
 * @param {string} file
 * @returns {string[]} its comments without types; consecutive line comments are one
 */
function commentsOf (file) {
  /** @type {acorn.Comment[]} */
  const found = []
  acorn.parse(readText(file), {
    ecmaVersion: 'latest',
    sourceType: file.endsWith('.mjs') ? 'module' : 'commonjs',
    allowHashBang: true,
    locations: true,
    onComment: found
  })
  const line = (/** @type {number} */ i) => found[i]?.loc?.start.line ?? 0
  const follows = (/** @type {number} */ i) =>
    found[i].type === 'Line' && found[i - 1]?.type === 'Line' && line(i) === line(i - 1) + 1
  return found
    .filter((_, i) => !follows(i))
    .map(({ value }) => value.replace(/^\s*\*+ ?/gm, '').replace(/\{\{?[^{}]*\}?\}/g, '').trim())
    .filter(text => /^[A-Za-z]/.test(text) && !text.startsWith('eslint-'))
}

const pages = listFiles('*.md').map(file => ({ file, paragraphs: proseOf(readText(file)) }))
const comments = listFiles('*.js').concat(listFiles('*.mjs'))
  .map(file => ({ file, texts: commentsOf(file) }))

/** Texts that users read outside of pages, by their origin. */
const shown = [
  ...[...targetMetrics, ...exporterMetrics].map(({ name, help }) => [name, help]),
  ...[options, clientOptions, agentOptions].flatMap(table =>
    Object.values(table).map(({ env, help }) => [env, help])),
  ...Object.entries(problems).map(([code, { title }]) => [code, title]),
  ...program.commands.map(command => [command.name(), command.helpInformation()])
]

describe('prose', () => {
  it.each(REPLACED_WORDS)('has no %s: %s', pattern => {
    const texts = [
      ...pages.flatMap(({ file, paragraphs }) => paragraphs.map(text => [file, text])),
      ...comments.filter(({ file }) => !file.includes('prose.test'))
        .flatMap(({ file, texts }) => texts.map(text => [file, text.replace(/\s+/g, ' ')])),
      ...shown
    ]
    expect(texts.filter(([, text]) => pattern.test(text))).toEqual([])
  })

  it('has few sentences of more than 30 words', () => {
    const sentences = pages.flatMap(({ file, paragraphs }) => paragraphs.flatMap(sentencesOf)
      .map(sentence => ({ file, sentence, words: wordsOf(sentence).length })))
    const long = sentences.filter(({ words }) => words > WORDS_OF_A_LONG_SENTENCE)
    expect(sentences.length).toBeGreaterThan(1000)
    const tooMany = long.length / sentences.length > LONG_SENTENCES_SHARE
    expect(tooMany ? long : []).toEqual([])
  })

  it.each(pages)(
    'of $file has at most one long sentence in twenty',
    ({ paragraphs }) => {
      const sentences = paragraphs.flatMap(sentencesOf)
      const long = sentences.filter(sentence => wordsOf(sentence).length > WORDS_OF_A_LONG_SENTENCE)
      const most = Math.max(1, Math.floor(LONG_SENTENCES_OF_A_PAGE * sentences.length))
      expect(long.length > most ? long : []).toEqual([])
    }
  )

  it('of --help fits on 100 columns', () => {
    const [, ...blocks] = readText('docs/commands.md').split('```text\n')
    const lines = blocks.flatMap(block => block.split('\n```')[0].split('\n'))
    expect(lines.length).toBeGreaterThan(200)
    expect(lines.filter(line => line.length > 100)).toEqual([])
  })

  it('names the subject first in comments', () => {
    const all = comments.flatMap(({ file, texts }) => texts.map(text => ({ file, text })))
    expect(all.length).toBeGreaterThan(3000)
    expect(all.filter(({ text }) => HEADLESS.test(text))).toEqual([])
  })

  it('has one tag on a line of a docstring', () => {
    const lines = comments.flatMap(({ file }) =>
      readText(file).split('\n').map((text, i) => ({ at: `${file}:${i + 1}`, text })))
    expect(lines.filter(({ text }) => /^\s*\/?\*/.test(text)).length).toBeGreaterThan(10_000)
    const crowded = /^\s*\/?\*(?!.*\*\/.*\/\*).*\s@[a-z]+ .*\s@[a-z]+ /
    expect(lines.filter(({ text }) => crowded.test(text))).toEqual([])
  })
})
