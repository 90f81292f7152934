'use strict'

require('../../../agent')
