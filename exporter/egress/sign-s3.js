'use strict'

const aws4 = require('aws4')

/**
 * Headers of a PUT to S3, with AWS Signature Version 4. The signature includes the hash of the
 * body, so S3 refuses a changed body.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 * @param {URL} url URL whose path needs no escapes
 * @param {object} options
 * @param {string} options.region
 * @param {Pick<import('./send').Body, 'bytes' | 'sha256' | 'mediaType'>} options.body
 * @param {ReturnType<typeof import('./credentials').readAwsKeys>} options.keys
 * @param {Date} [options.now]
 * @returns {Record<string, string>}
 */
function signS3 (url, { region, body: { bytes, sha256, mediaType }, keys, now = new Date() }) {
  const { headers } = aws4.sign({
    service: 's3',
    region,
    method: 'PUT',
    host: url.host,
    path: url.pathname,
    headers: {
      'Content-Type': mediaType,
      'Content-Length': String(bytes),
      'X-Amz-Content-Sha256': sha256,
      'X-Amz-Date': now.toISOString().replace(/[:-]|\.\d{3}/g, '')
    }
  }, keys)
  return /** @type {Record<string, string>} */ (headers)
}

module.exports = { signS3 }
