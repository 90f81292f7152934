// The exporter serves engine/text/shell.js under this name: expose/page.js.
export { shellAssignments } from '../../engine/text/shell.js'
