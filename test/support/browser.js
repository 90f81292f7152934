'use strict'

const { chromium } = require('playwright-core')

/** @type {import('playwright-core').Browser | undefined} */
let browser

/** A headless Chromium, shared by all tests of a file. @param {string} executablePath */
async function launch (executablePath) {
  browser ??= await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader']
  })
  return browser
}

/**
 * A browser page, its errors and its requests.
 * @param {string} executablePath of the browser
 * @param {import('playwright-core').BrowserContextOptions} [options]
 */
async function openPage (executablePath, options) {
  const context = await (
    await launch(executablePath)
  ).newContext({
    acceptDownloads: true,
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options
  })
  const page = await context.newPage()
  /** @type {string[]} */
  const complaints = []
  page.on('pageerror', error => complaints.push(error.message))
  page.on('console', message => { if (message.type() === 'error') complaints.push(message.text()) })
  /** @type {Set<string>} */
  const origins = new Set()
  page.on('request', request => {
    if (/^https?:/.test(request.url())) origins.add(new URL(request.url()).origin)
  })
  return { page, complaints, origins, close: () => context.close() }
}

async function closeBrowser () {
  await browser?.close()
  browser = undefined
}

module.exports = { openPage, closeBrowser }
