'use strict'

const CHOICES = new RegExp(
  "(?:option '[^']*?(--[\\w-]+)[^']*' argument|command-argument value) '(.*)' is invalid" +
    "(?: for argument '(.*)')?\\. Allowed choices are (.*)\\."
)
const REQUIRED = /required option '[^']*?(--[\w-]+)[^']*' not specified/

/**
 * Puts an error of commander into the form of memwatch's own errors.
 * @param {string} text
 * @param {readonly { long?: string, argChoices?: string[] }[]} options of the command
 * @returns {string}
 */
const usageText = (text, options) => text
  .replace(/^error: /, 'memwatch: ')
  .replace(CHOICES, (_, option, value, argument, choices) =>
    `${option ?? argument}: expected ${joinChoices(choices.split(', '))}, got "${value}"`)
  .replace(REQUIRED, (_, option) => {
    const choices = options.find(({ long }) => long === option)?.argChoices
    return `required option ${option} is missing` +
      `${choices ? `: expected ${joinChoices(choices)}` : ''}`
  })

/** @param {readonly string[]} choices */
const joinChoices = choices => choices.join(', ').replace(/, ([^,]*)$/, ' or $1')

module.exports = { usageText }
