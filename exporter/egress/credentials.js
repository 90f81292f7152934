'use strict'

const fs = require('node:fs')

/** Size limit, far larger than both kinds of file. */
const MOST_BYTES = 65_536
/** https://docs.aws.amazon.com/cli/v1/userguide/cli-configure-files.html */
const AWS_LINE = /^\s*(aws_access_key_id|aws_secret_access_key|aws_session_token)\s*=\s*(\S+)\s*$/gm

/**
 * Text of --ship-credentials-file. It is read for each request, because credentials rotate.
 * @param {string} file
 * @returns {string}
 * @throws {Error} if the file cannot be read
 */
function readText (file) {
  const stats = fs.statSync(file)
  if (!stats.isFile() || stats.size > MOST_BYTES) throw new Error(`${file}: expected a small file`)
  return fs.readFileSync(file, 'utf8').trim()
}

/**
 * @param {string | undefined} file
 * @returns {string | undefined} bearer token; undefined without a file
 * @throws {Error} names the file
 */
function readBearer (file) {
  if (!file) return undefined
  const token = readText(file)
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error(`${file}: expected one bearer token`)
  return token
}

/**
 * Reads the keys of S3: from the file, in the form of AWS's credentials file (first section), or
 * without a file from the environment.
 * @param {string | undefined} file
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {{ accessKeyId: string, secretAccessKey: string, sessionToken?: string }}
 * @throws {Error} names the missing value
 */
function readAwsKeys (file, env = process.env) {
  const [first] = file ? readText(file).split(/^\[(?!default\])/m).filter(Boolean) : []
  const given = first === undefined
    ? { ...env }
    : Object.fromEntries([...first.matchAll(AWS_LINE)].map(([, name, value]) =>
      [name.toUpperCase(), value]))
  const {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken
  } = given
  if (!accessKeyId || !secretAccessKey) {
    throw new Error(file
      ? `${file}: expected aws_access_key_id and aws_secret_access_key`
      : 'expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or ' +
        '--ship-credentials-file')
  }
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) }
}

module.exports = { readAwsKeys, readBearer }
