'use strict'

/** Escapes a text for HTML and XML, also inside quotes. @param {string} text */
const escapeMarkup = text =>
  text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

module.exports = { escapeMarkup }
