'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { createHash } = require('node:crypto')

const STYLES = path.join(__dirname, '../../exporter/page/page.css')

/** @param {string | Buffer} content */
const hashText = content => createHash('sha256').update(content).digest('hex')

/** The style that pictures of the page were drawn with; white space does not show. */
const styleHash = () => hashText(fs.readFileSync(STYLES, 'utf8').replace(/\s+/g, ' '))

module.exports = { hashText, styleHash }
