'use strict'

/**
 * Command line that runs a command as user 65534 of no group, from root. The command keeps one
 * capability, which lets it open files in closed folders, such as a clone in a private folder. It
 * gives no access to other processes, for which the kernel requires CAP_SYS_PTRACE.
 * @param {readonly string[]} command
 * @returns {[file: string, args: string[]]}
 */
const asOtherUser = command => ['setpriv', [
  '--reuid=65534',
  '--regid=65534',
  '--clear-groups',
  '--inh-caps=+dac_read_search',
  '--ambient-caps=+dac_read_search',
  ...command
]]

module.exports = { asOtherUser }
