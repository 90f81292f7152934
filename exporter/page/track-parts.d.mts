// The exporter serves exporter/anatomy/track-parts.js under this name: expose/page.js.
export { partsOfTracks } from '../anatomy/track-parts.js'
