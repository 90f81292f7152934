'use strict'

const load = require('dataset-loader'); const { numbers, run } = require('./common')
run(n => { load('set ' + n, key => ({ key, rows: numbers(n, 300) })) }, 800)
