'use strict'

const { ofOptions } = require('./table')

/**
 * @param {readonly import('./table').CompletedCommand[]} commands
 * @returns {string} a script for `source`; Bash 4 and later
 */
function bashScript (commands) {
  const cases = (/** @type {string[]} */ patterns, /** @type {string} */ body) =>
    patterns.length === 0 ? [] : [`    ${patterns.join('|')}) ${body} ;;`]
  const pattern = (/** @type {[{ name: string }, { flag: string }]} */ [{ name }, { flag }]) =>
    `'${name} ${flag}'`
  const valued = ofOptions(commands, ({ value }) => value === 'words', ([command, option]) =>
    `    '${command.name} ${option.flag}') _memwatch_words '${option.words.join(' ')}'; return ;;`)
  const files = ofOptions(commands, ({ value }) => value === 'file', pattern)
  const others = ofOptions(commands, ({ value }) => value === 'other', pattern)
  const targets = commands.filter(({ takesTarget }) => takesTarget).map(({ name }) => name)
  return `# Completion of memwatch for bash: source <(memwatch completion bash)
_memwatch_words () {
  local candidate
  for candidate in $1; do
    [[ $candidate == "$word"* ]] && COMPREPLY+=("$candidate")
  done
}
_memwatch () {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command='' i name
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ \${COMP_WORDS[i]} == -- ]]; then compopt -o default; return; fi
    [[ -z $command && \${COMP_WORDS[i]} != -* ]] && command=\${COMP_WORDS[i]}
  done
  case "$command $before" in
${[
    ...valued,
    ...cases(files, 'compopt -o default; return'),
    ...cases(others, 'return')
  ].join('\n')}
  esac
  if [[ -z $command ]]; then
    _memwatch_words '${commands.map(({ name }) => name).join(' ')} --help --version'
    return
  fi
  if [[ $word == -* ]]; then
    case $command in
${commands.map(({ name, options }) =>
  `      ${name}) _memwatch_words '${options.map(({ flag }) => flag).join(' ')}' ;;`).join('\n')}
    esac
    return
  fi
  case $command in
${commands.filter(({ words }) => words.length > 0).map(({ name, words }) =>
  `    ${name}) _memwatch_words '${words.join(' ')}' ;;`).join('\n')}
  esac
  case $command in
    ${targets.join('|')})
      while IFS= read -r name; do
        [[ $name == "$word"* ]] && COMPREPLY+=("$name")
      done < <(memwatch completion targets 2>/dev/null) ;;
    *) [[ \${#COMPREPLY[@]} -gt 0 ]] || compopt -o default ;;
  esac
}
complete -F _memwatch memwatch
`
}

module.exports = { bashScript }
