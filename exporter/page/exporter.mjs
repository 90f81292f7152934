/** Error with the message of the exporter. */
export class Refused extends Error {
  /**
   * @param {{ detail?: string, code?: string }} problem
   * @param {number} status
   */
  constructor ({ detail, code }, status) {
    super(detail ?? `the exporter answered ${status}`)
    this.code = code
  }
}

/**
 * Calls the exporter's API. If the exporter requires a token, the browser asks for it as a
 * password.
 * @param {string} path below /api/v1/
 * @param {Record<string, string | number | string[] | undefined>} [query]
 * @param {'GET' | 'POST'} [method]
 * @returns {Promise<any>}
 * @throws {Refused}
 */
export async function ask (path, query = {}, method = 'GET') {
  const response = await fetch(apiPath(path, query), {
    method,
    headers: { accept: 'application/json' }
  })
  const body = await response.json().catch(() => ({}))
  if (!response.ok) throw new Refused(body, response.status)
  return body
}

/**
 * @param {string} path below /api/v1/
 * @param {Record<string, string | number | string[] | undefined>} [query]
 */
export function apiPath (path, query = {}) {
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [value].flat().map(one => [name, String(one)])
    )
  )
  return `/api/v1/${path}${search.size > 0 ? `?${search}` : ''}`
}

/**
 * Opens the stream of all changes, which reconnects after an interruption.
 * @param {Record<'targets' | 'verdict' | 'death' | 'captured', (content: any) => void>} on
 * @param {(connected: boolean) => void} onConnection
 */
export function listen (on, onConnection) {
  const source = new EventSource('/api/v1/live')
  for (const [event, take] of Object.entries(on)) {
    source.addEventListener(event, message => take(JSON.parse(message.data)))
  }
  source.addEventListener('open', () => onConnection(true))
  source.addEventListener('error', () => {
    onConnection(false)
    // The browser does not reconnect after an answer that is not a stream, so this function does.
    // The exporter may be starting, or may have too many viewers.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => listen(on, onConnection), 3000)
  })
}
