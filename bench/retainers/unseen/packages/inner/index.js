'use strict'

class Tracker {
  constructor () {
    this.spans = []
  }

  open (span) {
    this.spans.push(span)
    return this.spans.length
  }
}
const tracker = new Tracker()
module.exports = { open: span => tracker.open(span) }
