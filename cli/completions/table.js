'use strict'

const { diagnoses } = require('@memwatch/engine/diagnoses/index')

/**
 * An option, and the completions of its value.
 * @typedef {object} CompletedOption
 * @property {string} flag --long
 * @property {string} help
 * @property {'none' | 'file' | 'words' | 'other'} value
 * @property {string[]} words values, if they are known
 *
 * @typedef {object} CompletedCommand
 * @property {string} name
 * @property {string} help
 * @property {CompletedOption[]} options
 * @property {string[]} words possible values of its argument
 * @property {boolean} takesTarget
 */

/** A placeholder that lists its values: <exit|stay>. */
const LISTED = /^<([a-z-]+(?:\|[a-z-]+)+)>$/

/**
 * The commands and options of a program.
 * @param {import('commander').Command} program
 * @returns {CompletedCommand[]}
 */
function completionTable (program) {
  return program.commands.map(command => ({
    name: command.name(),
    help: firstLine(command.description()),
    options: command.options.flatMap(option => option.long ? describeOption(option) : [])
      .concat({ flag: '--help', help: 'display help for command', value: 'none', words: [] }),
    words: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
    takesTarget: command.registeredArguments.some(argument => argument.name() === 'target')
  }))
}

/**
 * @param {import('commander').Option} option
 * @returns {CompletedOption}
 */
function describeOption ({ long, flags, description, argChoices, required, optional }) {
  const placeholder = flags.split(' ').at(-1) ?? ''
  const words = long === '--diagnosis'
    ? diagnoses.map(({ id }) => id)
    : argChoices ?? LISTED.exec(placeholder)?.[1].split('|') ?? []
  const value = !required && !optional
    ? 'none'
    : words.length > 0 ? 'words' : /FILE|FOLDER|PATH/.test(placeholder) ? 'file' : 'other'
  return { flag: String(long), help: firstLine(description), value, words }
}

/** @param {string} text */
const firstLine = text => text.split('\n')[0]

/**
 * @template T
 * @param {readonly CompletedCommand[]} commands
 * @param {(option: CompletedOption) => boolean} accept
 * @param {(commandAndFlag: [CompletedCommand, CompletedOption]) => T} make
 * @returns {T[]} one for each accepted option of each command
 */
const ofOptions = (commands, accept, make) => commands.flatMap(command =>
  command.options.filter(accept).map(option => make([command, option])))

module.exports = { completionTable, ofOptions }
