// The exporter serves exporter/text/shell.js under this name: expose/page.js.
export { shellAssignments } from '../text/shell.js'
