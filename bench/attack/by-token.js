'use strict'

const { OPERATOR } = require('./places')
const { askAtRate } = require('./by-http')

/** The documented limit of one address: a thousand in ten seconds. */
const REQUESTS_PER_SECOND = 100
const TRACKS = ['rssBytes', 'heapUsedBytes', 'externalBytes', 'eventLoopActiveSeconds']

/**
 * A client with the token sends every expensive request, at the highest rate allowed for one
 * address.
 * @param {import('./stage').Stage} stage
 * @param {import('./attacks').Options} options
 */
async function costlyCalls (stage, { seconds }) {
  const unwilling = await stage.startApp('unwilling', { MEMWATCH_CAPTURES: 'off' })
  await stage.awaitTarget(unwilling.pid, ({ uptimeSeconds }) => uptimeSeconds >= 2, 60_000)
  const headers = { authorization: `Bearer ${stage.token}` }
  /** @type {{ path: string, method?: string }[]} */
  const calls = [
    { path: '/api/v1/targets' },
    { path: '/api/v1/diagnoses' },
    {
      path: `/api/v1/targets/good/series?seconds=604800&${TRACKS.map(track => `track=${track}`).join('&')}`
    },
    { path: '/api/v1/plan?node=22&memory=512Mi' },
    { path: '/api/v1/plan?node=24&memory=2Gi' },
    { path: '/api/v1/targets/unwilling/captures?kind=heap_profile', method: 'POST' },
    { path: '/api/v1/targets/unwilling/captures?kind=heap_snapshot', method: 'POST' },
    { path: '/api/v1/targets/unwilling/trim', method: 'POST' },
    { path: '/api/v1/recording?seconds=2', method: 'POST' },
    { path: '/api/v1/recording?seconds=2' },
    { path: '/api/v1/openapi.json' },
    { path: '/api/v1/deaths' },
    { path: '/api/v1/captures' },
    { path: '/metrics' }
  ]
  const { asked, answers } = await askAtRate(stage, REQUESTS_PER_SECOND, seconds, i => ({
    from: OPERATOR,
    headers,
    ...calls[i % calls.length]
  }))
  return {
    tried: `${asked} calls in ${seconds} s: series of a week, plans, recordings, captures, and ` +
      `trims that the app refuses (${answers})`
  }
}

module.exports = { costlyCalls }
