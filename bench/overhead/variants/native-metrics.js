'use strict'

// The addon of dd-trace, which adds GC callbacks to V8 as memwatch's addon does. Its count is
// offered to gc-count-app.js.
const nativeMetrics = require('@datadog/native-metrics')

nativeMetrics.start()
Object.assign(globalThis, { countOtherGcs: () => nativeMetrics.stats().gc.all.count })
