'use strict'

require('../measurement').offerMeasurement({ on () {}, off () {} })
