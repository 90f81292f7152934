import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'
import { configureMarkdown } from './markdown.mjs'
import { routes, sidebar } from './pages.mjs'

/**
 * `npm run docs`: the site, made of the Markdown files that `pages.mjs` lists. They stay readable on
 * GitHub. A dead link fails the build.
 */

const require = createRequire(import.meta.url)
const { REPOSITORY } = require('../../scripts/packages')
const { description } = require('../../package.json')

export default defineConfig({
  title: 'memwatch',
  description,
  srcDir: fileURLToPath(new URL('../..', import.meta.url)),
  // Folders without a page; pages.test.js holds the others and the list together.
  srcExclude: ['{agent,allocator,bench,cli,contrib,engine,exporter,lab,mcp,otlp,scripts,test}/**',
    'deploy/helm/**', 'README.md'],
  rewrites: routes,
  markdown: { config: configureMarkdown },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar,
    nav: [
      { text: 'Start', link: '/quick-start' },
      { text: 'Diagnoses', link: '/diagnoses' },
      { text: 'Reference', link: '/config' }
    ],
    socialLinks: [{ icon: 'github', link: REPOSITORY }]
  }
})
