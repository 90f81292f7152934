'use strict'

const { running } = require('./running')

afterAll(() => Promise.all([...running].map(({ stop }) => stop())))
