'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')

const ROOT = path.join(__dirname, '../..')

/**
 * @param {string} pattern of git
 * @returns {string[]} files of the repository, including uncommitted ones
 */
const listFiles = pattern =>
  execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', pattern],
    { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 })
    .split('\0')
    .filter(file => file !== '' && fs.existsSync(path.join(ROOT, file)))

/** @param {string} file */
const readText = file => fs.readFileSync(path.join(ROOT, file), 'utf8')

module.exports = { ROOT, listFiles, readText }
