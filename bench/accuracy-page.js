'use strict'
module.exports = { accuracyPage: () => '' }
