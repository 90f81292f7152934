'use strict'
const { EventEmitter } = require('node:events')
class Bus extends EventEmitter {}
const shared = new Bus()
shared.setMaxListeners(0)
exports.subscribe = (topic, handler) => { shared.on(topic, handler) }
exports.publish = (topic, message) => shared.emit(topic, message)
