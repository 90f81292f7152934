'use strict'

const { problems } = require('../../exporter/expose/problems')
const { page } = require('./page')
const { table } = require('../markdown')

/** @param {any} openApi the description of the API */
const api = ({ paths }) =>
  page(
    'The API',
    '[openapi.json](openapi.json) is the full description; an exporter serves its own at ' +
      '`/api/v1/openapi.json`. Within `v1` no field is removed and none changes its meaning. ' +
      'Clients on the same machine read without the token; [SECURITY.md](../SECURITY.md) lists ' +
      'who may do what.',
    table(
      ['method', 'path', 'content or action'],
      Object.entries(paths).flatMap(([url, methods]) =>
        Object.entries(/** @type {Record<string, { summary: string }>} */ (methods)).map(
          ([method, { summary }]) => [method.toUpperCase(), `\`${url}\``, summary]
        )
      )
    ),
    '## Errors\n\nErrors are problem details (RFC 9457, `application/problem+json`): `type`, ' +
      '`title`, `status`, `detail`, a sentence for people, and `code`, a constant word.',
    table(
      ['code', 'status', 'meaning'],
      Object.entries(problems).map(([code, { status, title }]) => [
        `<a id="${code}"></a>\`${code}\``,
        status,
        title
      ])
    )
  )

module.exports = { api }
