'use strict'

// A read-through cache has a size limit. For the first half minute it fills, and the live heap
// grows like a leak. When the cache is full, each new entry replaces the oldest one, and the live
// heap is constant.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

/**
 * @typedef {{ id: string, title: string, paragraphs: string[], links: { to: string, text: string
 *   }[] }} Article
 */

const MOST_ARTICLES = 8000

/** @type {Map<string, Article>} entries in order of insertion, so the first key is the oldest */
const cache = new Map()

/**
 * @param {string} id
 * @returns {Article}
 */
function article (id) {
  const cached = cache.get(id)
  if (cached) return cached
  if (cache.size >= MOST_ARTICLES) cache.delete(/** @type {string} */ (cache.keys().next().value))
  const loaded = {
    id,
    title: `Article ${id}`,
    paragraphs: Array.from({ length: 60 }, (_, i) =>
      `Paragraph ${i} of article ${id}, with `.concat('words '.repeat(8)).toUpperCase()
    ),
    links: Array.from({ length: 20 }, (_, i) => ({
      to: `/articles/${i}`,
      text: `See ${id}, part ${i}`
    }))
  }
  cache.set(id, loaded)
  return loaded
}

const run = appRun({ figures: () => ({ cached: cache.size }) })
const server = http.createServer((request, response) => {
  const [, resource, id] = (request.url ?? '/').split('/')
  if (resource !== 'articles') return sendJson(response, { error: 'not found' }, 404)
  const { title, links } = article(id)
  sendJson(response, { title, links: links.slice(0, 3) })
})

withLoad(server, run, {
  phases: [{ perSecond: 220 }],
  requests: [{ method: 'GET', path: '/articles/{key}' }],
  keys: 1_000_000
})
