'use strict'

const { startExporter } = require('../support/exporter')
const { openPage, closeBrowser } = require('../support/browser')
const { tellRecording } = require('../support/recorded-agent')
const { describeWithTools } = require('../support/tools')
const { defined } = require('../support/defined')

/** Share of the recording at which the leak is half a minute before the limit. */
const SHARE = 0.66
const VIEWPORTS = [{ width: 1280, height: 800 }, { width: 390, height: 844 }]

describeWithTools('the page of a leaking target', ({ chromium }) => {
  /** @type {Awaited<ReturnType<typeof startExporter>>} */
  let exporter
  /** @type {Awaited<ReturnType<typeof tellRecording>>} */
  let agent
  beforeAll(async () => {
    exporter = await startExporter({ autoCaptures: false })
    agent = await tellRecording(exporter, 'js-heap-leak', { name: 'shop' }, { share: SHARE })
  }, 60_000)
  afterAll(async () => {
    agent.destroy()
    await closeBrowser()
    await exporter.stop()
  })

  it.each(VIEWPORTS)('shows state, cause, time left, fix and prediction: $width × $height', async viewport => {
    const { page, complaints, close } = await openPage(chromium, { viewport })
    await page.goto(`${exporter.url}/#target=shop`)
    const band = page.locator('.band')
    const parts = [
      band.locator('.state', { hasText: /suspected|confirmed/ }),
      band.locator('.sentence', { hasText: 'The live heap grows by' }),
      band.getByRole('timer'),
      band.locator('pre').first(),
      band.getByRole('button', { name: /^Copy/ }).first(),
      band.locator('.predicted', { hasText: 'growth of the live heap' }).first()
    ]
    for (const part of parts) {
      await part.waitFor()
      const { y, height } = defined(await part.boundingBox() ?? undefined)
      expect(y + height).toBeLessThanOrEqual(viewport.height)
    }
    expect(await page.locator('main').innerText()).not.toMatch(/[a-z]+(Bytes|Ratio|PerSecond)\b/)
    expect(complaints).toEqual([])
    await close()
  }, 60_000)

  it('counts down to the limit', async () => {
    const { page, close } = await openPage(chromium)
    await page.goto(`${exporter.url}/#target=shop`)
    const timer = page.getByRole('timer')
    await timer.waitFor()
    const first = secondsOf(await timer.innerText())
    await page.waitForFunction(first => {
      const [minutes, seconds] = (document.querySelector('[role=timer]')?.textContent ?? '').split(':').map(Number)
      return 60 * minutes + seconds < first
    }, first)
    expect(secondsOf(await timer.innerText())).toBeLessThan(first)
    await close()
  }, 60_000)
})

/** @param {string} text 1:05 */
function secondsOf (text) {
  const [minutes, seconds] = text.split(':').map(Number)
  return 60 * minutes + seconds
}
