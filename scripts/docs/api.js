'use strict'

const { problems } = require('../../exporter/expose/problems')
const { page } = require('./page')
const { table } = require('../markdown')

/** @param {any} openApi the description of the API */
const api = ({ paths }) =>
  page(
    'The API',
    '[openapi.json](openapi.json) says all of it, for machines; an exporter serves its own at ' +
      '`/api/v1/openapi.json`. Nothing is taken away or changes its meaning within `v1`. From ' +
        'the same machine reading needs no token; [SECURITY.md](../SECURITY.md) says who may do ' +
          'what.',
    table(
      ['method', 'path', 'what'],
      Object.entries(paths).flatMap(([url, methods]) =>
        Object.entries(/** @type {Record<string, { summary: string }>} */ (methods)).map(
          ([method, { summary }]) => [method.toUpperCase(), `\`${url}\``, summary]
        )
      )
    ),
    '## Errors\n\nWhat is not done is answered with problem details (RFC 9457, ' +
      '`application/problem+json`): `type`, `title`, `status`, `detail`, a sentence for people, ' +
        'and `code`, a word that stays.',
    table(
      ['code', 'status', 'means'],
      Object.entries(problems).map(([code, { status, title }]) => [
        `<a id="${code}"></a>\`${code}\``,
        status,
        title
      ])
    )
  )

module.exports = { api }
