// This dependency of @grafana/ui is published in a form that esbuild reads otherwise than webpack:
// its one export under both names.
import * as all from './node_modules/@grafana/ui/node_modules/react-custom-scrollbars-2/lib/index.js'

export const Scrollbars = all.Scrollbars ?? all.default?.Scrollbars ?? all.default
export default Scrollbars
