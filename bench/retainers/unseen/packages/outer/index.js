'use strict'

module.exports = require('inner')
