'use strict'

/** Generated pages of docs/. Each is a function that returns Markdown from the program's tables. */
module.exports = {
  ...require('./metrics'),
  ...require('./diagnoses'),
  ...require('./capture-rules'),
  ...require('./deaths'),
  ...require('./config'),
  ...require('./commands'),
  ...require('./wire-protocol'),
  ...require('./known-bugs'),
  ...require('./lab'),
  ...require('./api'),
  ...require('./sources')
}
