// The exporter serves exporter/text/format.js under this name: expose/page.js.
export { formatBytes, formatRatio, formatNumber, formatSeconds, formatValue } from '../text/format.js'
