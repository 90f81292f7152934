// esbuild and webpack resolve the one export of this dependency of @grafana/ui differently, so this
// module exports it under both names.
import * as all from './node_modules/@grafana/ui/node_modules/react-custom-scrollbars-2/lib/index.js'

export const Scrollbars = all.Scrollbars ?? all.default?.Scrollbars ?? all.default
export default Scrollbars
