'use strict'

/** The generated pages of docs/, each a function from the tables to Markdown. */
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
