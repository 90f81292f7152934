'use strict'

const { open } = require('outer'); const { numbers, run } = require('./common')
run(n => { open({ name: 'span' + n, ticks: numbers(n, 300) }) }, 800)
