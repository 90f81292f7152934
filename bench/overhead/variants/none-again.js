'use strict'

require('../switch').offerSwitch({ on () {}, off () {} })
