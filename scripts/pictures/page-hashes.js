'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { createHash } = require('node:crypto')

const STYLES = path.join(__dirname, '../../exporter/page/page.css')

/** @param {string | Buffer} content */
const hashText = content => createHash('sha256').update(content).digest('hex')

/**
 * Hash of the style with which pictures of the page are drawn, without white space, which has no
 * effect.
 */
const styleHash = () => hashText(fs.readFileSync(STYLES, 'utf8').replace(/\s+/g, ' '))

module.exports = { hashText, styleHash }
