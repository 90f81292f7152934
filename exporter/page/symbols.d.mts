// The exporter serves engine/text/state-symbols.js under this name: expose/page.js.
export { stateSymbols } from '../../engine/text/state-symbols.js'
