'use strict'

const { startExporter } = require('../support/exporter')
const { openPage, closeBrowser } = require('../support/browser')
const { tellRecording } = require('../support/recorded-agent')
const { describeWithTools } = require('../support/tools')

const MARKUP = '<img src=x onerror=alert(1)>'

describeWithTools('the page of an app whose texts are all markup', ({ chromium }) => {
  let exporter
  beforeAll(async () => {
    exporter = await startExporter({ autoCaptures: false })
    await tellRecording(exporter, 'semi-space-starvation', {
      name: MARKUP,
      execArgv: [MARKUP],
      nodeOptions: [`--title=${MARKUP}`],
      mallocEnv: { LD_PRELOAD: MARKUP }
    })
  })
  afterAll(async () => {
    await closeBrowser()
    await exporter.stop()
  })

  it.each(['', `#target=${encodeURIComponent(MARKUP)}&thread=main`])(
    'shows them as text: %s',
    async hash => {
      const { page, complaints, origins, close } = await openPage(chromium)
      page.on('dialog', dialog => complaints.push(`dialog: ${dialog.message()}`))
      await page.goto(`${exporter.url}/${hash}`)
      await page.getByText(MARKUP).first().waitFor()
      await page
        .getByText(/semi-space/)
        .first()
        .waitFor()
      expect([
        await page.locator('img').count(),
        await page.locator('[onerror]').count(),
        complaints,
        [...origins]
      ]).toEqual([0, 0, [], [exporter.url]])
      if (hash) {
        expect(await page.locator('.fix').first().innerText()).toContain('memwatch leaves out')
      }
      await close()
    }
  )
})
