'use strict'

const { createHash, createHmac } = require('node:crypto')

/**
 * Verifies AWS Signature Version 4 of a request, like a server. It is written from the
 * specification, without the library that signs.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
 */

const sha256 = data => createHash('sha256').update(data).digest('hex')
const hmac = (key, text) => createHmac('sha256', key).update(text).digest()

/**
 * @param {{ method: string, path: string, headers: Record<string, any> }} request headers: names
 *   in lower case
 * @param {string} secret
 * @returns {{ signature: string, expected: string, accessKeyId: string, signed: string[] }}
 *   signature: the request's signature; expected: the correct one
 */
function verifySignature ({ method, path, headers }, secret) {
  const [, accessKeyId, date, region, service, names, signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/
      .exec(headers.authorization) ?? []
  const signed = names.split(';')
  const canonical = [
    method,
    path.split('/').map(part => encodeURIComponent(decodeURIComponent(part))).join('/'),
    '',
    ...signed.map(name => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}`),
    '',
    names,
    headers['x-amz-content-sha256']
  ].join('\n')
  const scope = `${date}/${region}/${service}/aws4_request`
  const toSign = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n')
  const key = [date, region, service, 'aws4_request'].reduce(hmac, `AWS4${secret}`)
  return { signature, expected: hmac(key, toSign).toString('hex'), accessKeyId, signed }
}

module.exports = { sha256, verifySignature }
