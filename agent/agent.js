'use strict'

// `node -r ./node_modules/memwatch/agent` names this file: a path bypasses the package's exports.
require('./index')
