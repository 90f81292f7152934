'use strict'

const { ofOptions } = require('./table')

/** Quotes a word for fish: within single quotes, \ and ' are escaped. @param {string} text */
const quoted = text => `'${text.replace(/[\\']/g, '\\$&')}'`

/** Arguments of `complete` for the value of an option. */
const VALUES = {
  none: () => '',
  file: () => ' -r -F',
  other: () => ' -x',
  words: (/** @type {string[]} */ words) => ` -x -a ${quoted(words.join(' '))}`
}

/**
 * @param {readonly import('./table').CompletedCommand[]} commands
 * @returns {string} a script for `source`
 */
function fishScript (commands) {
  const seen = (/** @type {string[]} */ names) => quoted(`__fish_seen_subcommand_from ${names.join(' ')}`)
  const targets = commands.filter(({ takesTarget }) => takesTarget).map(({ name }) => name)
  return [
    '# Completion of memwatch for fish: memwatch completion fish | source',
    'complete -c memwatch -n __fish_use_subcommand -f',
    ...commands.map(({ name, help }) =>
      `complete -c memwatch -n __fish_use_subcommand -a ${name} -d ${quoted(help)}`),
    ...ofOptions(commands, () => true, ([{ name }, { flag, help, value, words }]) =>
      `complete -c memwatch -n ${seen([name])} -l ${flag.slice(2)}${VALUES[value](words)} ` +
        `-d ${quoted(help)}`),
    ...commands.filter(({ words }) => words.length > 0).map(({ name, words }) =>
      `complete -c memwatch -n ${seen([name])} -f -a ${quoted(words.join(' '))}`),
    `complete -c memwatch -n ${seen(targets)} -f -a '(memwatch completion targets 2>/dev/null)'`,
    ''
  ].join('\n')
}

module.exports = { fishScript }
