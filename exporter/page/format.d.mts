// The exporter serves engine/text/format.js under this name: expose/page.js.
export { formatBytes, formatRatio, formatNumber, formatSeconds, formatValue } from '../../engine/text/format.js'
