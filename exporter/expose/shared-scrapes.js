'use strict'

const { TokenBucket } = require('./token-bucket')

/** Longest time for which a rendered text is served again. */
const RETAINED_MS = 1000
/**
 * Limit of renderings: two at once, then one per second. So a Prometheus that scrapes once a
 * second, and some milliseconds early, reads a new text each time.
 */
const RENDERINGS = { burst: 2, perSecond: 1 }

/** @typedef {import('./metrics').Scrape} Scrape */

/** The text of one content type. */
class Form {
  /** @type {Promise<Scrape> | undefined} */
  text
  isRendering = false

  /** @param {number} nowMs */
  constructor (nowMs) {
    this.renderings = new TokenBucket(RENDERINGS, nowMs)
  }
}

/**
 * Renders /metrics at most about once a second, and sends the same text to all scrapers until the
 * next rendering. No text is more than a second old, and the cost does not grow with the number of
 * scrapers.
 *
 * @param {ReturnType<typeof import('./metrics').createMetrics>} metrics
 * @param {() => number} [now] ms, monotonic
 * @returns {{ text: (accept?: string) => Promise<Scrape> }}
 */
function shareScrapes (metrics, now = () => performance.now()) {
  /** @type {Map<string, Form>} */
  const forms = new Map()

  return {
    text (accept = '') {
      const contentType = metrics.contentTypeFor(accept)
      const form = forms.get(contentType) ?? new Form(now())
      forms.set(contentType, form)
      if (form.text && (form.isRendering || !form.renderings.take(now()))) return form.text
      form.isRendering = true
      const text = form.text = metrics.text(contentType)
      const drop = () => { if (form.text === text) form.text = undefined }
      text.then(() => { setTimeout(drop, RETAINED_MS).unref() }, drop)
        .finally(() => { form.isRendering = false })
      return text
    }
  }
}

module.exports = { shareScrapes }
