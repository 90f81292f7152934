// The exporter serves exporter/captures/kinds.js under this name: expose/page.js.
export { kinds } from '../captures/kinds.js'
