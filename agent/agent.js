'use strict'

// A path, as in `node -r ./node_modules/memwatch/agent`, goes past the package's exports.
require('./index')
