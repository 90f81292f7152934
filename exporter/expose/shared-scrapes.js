'use strict'

/** Longest that a text is handed out. */
const FRESH_MS = 1000
/**
 * Renderings at a stretch, and then one a second: a Prometheus that scrapes once a second, and comes some milliseconds early, reads a new text each time.
 */
const MOST_AT_A_STRETCH = 2

/** @typedef {{ contentType: string, length: number, parts: Buffer[] }} Scrape */

/**
 * Renders /metrics once a second at most, and hands the same text to all who ask meanwhile: no text is older than a second, and no number of
 * scrapers costs more than one.
 *
 * @param {ReturnType<typeof import('./metrics').createMetrics>} metrics
 * @param {() => number} [now] ms, monotonic
 * @returns {{ text: (accept?: string) => Promise<Scrape> }}
 */
function shareScrapes (metrics, now = () => performance.now()) {
  /** By content type. @type {Map<string, { text?: Promise<Scrape>, isRendering: boolean, renderings: number, atMs: number }>} */
  const forms = new Map()

  /** @param {string} contentType @returns {Promise<Scrape>} */
  async function render (contentType) {
    const { length, parts } = await metrics.text(contentType)
    const read = []
    for await (const part of parts()) read.push(part)
    return { contentType, length, parts: read }
  }

  return {
    text (accept = '') {
      const contentType = metrics.contentTypeFor(accept)
      const form = forms.get(contentType) ?? { isRendering: false, renderings: MOST_AT_A_STRETCH, atMs: now() }
      forms.set(contentType, form)
      const nowMs = now()
      form.renderings = Math.min(MOST_AT_A_STRETCH, form.renderings + (nowMs - form.atMs) / FRESH_MS)
      form.atMs = nowMs
      if (form.text && (form.isRendering || form.renderings < 1)) return form.text
      form.renderings--
      form.isRendering = true
      const text = form.text = render(contentType)
      const drop = () => { if (form.text === text) form.text = undefined }
      text.then(() => { setTimeout(drop, FRESH_MS).unref() }, drop).finally(() => { form.isRendering = false })
      return text
    }
  }
}

module.exports = { shareScrapes }
