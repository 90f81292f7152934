// The exporter serves engine/memory/track-parts.js under this name: expose/page.js.
export { partsOfTracks } from '../../engine/memory/track-parts.js'
