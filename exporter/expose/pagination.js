'use strict'

const { refuse } = require('./problems')

/**
 * @typedef {(string | number)[]} Place position of an item in its list: fields that are compared
 *   one after the other
 */

const MOST_ITEMS = 1000

/** Query parameters of a list. */
const pageQuery = {
  limit: { type: 'integer', minimum: 1, maximum: MOST_ITEMS, default: MOST_ITEMS },
  after: {
    type: 'string',
    description: 'start of the next page: use only the value in the header Link of the previous ' +
      'page'
  }
}

/**
 * A page of a list. If there are more items, the header Link names the next page (RFC 8288). The
 * next page begins after the last item of this page in the sort order. So items that appear or
 * disappear in the meantime neither repeat nor hide others.
 *
 * @template T
 * @param {import('fastify').FastifyRequest} request request whose query has the fields of pageQuery
 * @param {import('fastify').FastifyReply} reply
 * @param {readonly T[]} items
 * @param {(item: T) => Place} placeOf position of an item; different for each item
 * @returns {T[] | import('fastify').FastifyReply} items of the page, or a refusal
 */
function pageOf (request, reply, items, placeOf) {
  const { limit = MOST_ITEMS, after } = /** @type {{ limit?: number, after?: string }} */ (request.query)
  const behind = after === undefined ? undefined : decode(after)
  if (behind === null) {
    return refuse(reply, 'unknown_page', 'after: expected the value in the Link header of the previous page')
  }
  const ordered = items
    .map(item => ({ item, place: placeOf(item) }))
    .sort((a, b) => compare(a.place, b.place))
  const first = behind ? ordered.findIndex(({ place }) => compare(place, behind) > 0) : 0
  const rest = first < 0 ? [] : ordered.slice(first)
  const shown = rest.slice(0, limit)
  if (rest.length > shown.length) {
    const next = new URL(request.url, 'http://localhost')
    next.searchParams.set('after', encode(shown[shown.length - 1].place))
    reply.header('link', `<${next.pathname}${next.search}>; rel="next"`)
  }
  return shown.map(({ item }) => item)
}

/**
 * @param {Place} a
 * @param {Place} b
 */
function compare (a, b) {
  const i = a.findIndex((field, i) => field !== b[i])
  return i < 0 ? 0 : a[i] < b[i] ? -1 : 1
}

/** @param {Place} place */
const encode = place => Buffer.from(JSON.stringify(place)).toString('base64url')

/**
 * @param {string} text
 * @returns {Place | null} position; null for an invalid text
 */
function decode (text) {
  try {
    const place = JSON.parse(Buffer.from(text, 'base64url').toString())
    return Array.isArray(place) &&
      place.every(field => typeof field === 'string' || typeof field === 'number')
      ? place
      : null
  } catch {
    return null
  }
}

module.exports = { pageOf, pageQuery }
