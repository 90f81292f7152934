'use strict'

const { shellWord } = require('@memwatch/engine/text/shell')
const { ofOptions } = require('./table')

/**
 * Item of _describe, which splits at the first colon.
 * @param {string} name
 * @param {string} help
 */
const described = (name, help) => shellWord(`${name.replaceAll(':', '\\:')}:${help}`)

/**
 * @param {readonly import('./table').CompletedCommand[]} commands
 * @returns {string} a script for `source`, or a file _memwatch in a folder of fpath
 */
function zshScript (commands) {
  const pattern = (/** @type {[{ name: string }, { flag: string }]} */ [{ name }, { flag }]) =>
    `'${name} ${flag}'`
  const valued = ofOptions(commands, ({ value }) => value === 'words', ([command, option]) =>
    `    '${command.name} ${option.flag}') compadd -- ${option.words.join(' ')}; return ;;`)
  const files = ofOptions(commands, ({ value }) => value === 'file', pattern)
  const others = ofOptions(commands, ({ value }) => value === 'other', pattern)
  const targets = commands.filter(({ takesTarget }) => takesTarget).map(({ name }) => name)
  return `#compdef memwatch
# Completion of memwatch for zsh: source <(memwatch completion zsh), after compinit
_memwatch () {
  local -a commands options
  local command=$words[2] before=$words[CURRENT-1]
  if (( CURRENT == 2 )); then
    commands=(
${commands.map(({ name, help }) => `      ${described(name, help)}`).join('\n')}
    )
    _describe command commands
    return
  fi
  case "$command $before" in
${valued.join('\n')}
    ${files.join('|')}) _files; return ;;
    ${others.join('|')}) return ;;
  esac
  if [[ $words[CURRENT] == -* ]]; then
    case $command in
${commands.map(({ name, options }) => `      ${name}) options=(
${options.map(({ flag, help }) => `        ${described(flag, help)}`).join('\n')}
      ) ;;`).join('\n')}
    esac
    _describe -o option options
    return
  fi
  case $command in
${commands.filter(({ words }) => words.length > 0).map(({ name, words }) =>
  `    ${name}) compadd -- ${words.join(' ')} ;;`).join('\n')}
  esac
  case $command in
    ${targets.join('|')}) compadd -- \${(f)"$(memwatch completion targets 2>/dev/null)"} ;;
    *) _files ;;
  esac
}
if [[ $funcstack[1] == _memwatch ]]; then _memwatch "$@"; else compdef _memwatch memwatch; fi
`
}

module.exports = { zshScript }
