import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { pageOf, routes } from './pages.mjs'

/** Rules that make pages of the repository's files. */

const require = createRequire(import.meta.url)
const { REPOSITORY } = require('../../scripts/packages')
const { diagnosisSections } = require('../../scripts/diagnosis-page')
const { diagnoses } = require('../../engine/diagnoses')
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PICTURE = /\.(png|svg)$/

/**
 * @param {any} env of VitePress
 * @returns {string} file that is rendered, relative to the root
 */
const fileOf = env => path.relative(ROOT, env.realPath ?? env.path)

/**
 * @param {string} href as the file has it
 * @param {string} from the file
 * @returns {string} the page, where the site has the file; else the file on GitHub
 */
export function siteLink (href, from) {
  if (/^(\w+:|#|\/)/.test(href)) return href
  const [file, anchor] = href.split('#')
  const to = path.join(path.dirname(from), file)
  const diagnosis = to === 'docs/diagnoses.md' && diagnoses.find(({ id }) => id === anchor)
  if (diagnosis) return `/diagnoses/${anchor}`
  const route = routes[to]
  if (!route) return `${REPOSITORY}/blob/main/${to}`
  return `/${route.replace(/(index)?\.md$/, '')}${anchor ? `#${anchor}` : ''}`
}

/** @param {import('markdown-it').default} md */
export function configureMarkdown (md) {
  md.core.ruler.before('normalize', 'diagnosis', state => {
    const diagnosis = diagnoses.find(diagnosis => pageOf(diagnosis) === fileOf(state.env))
    if (!diagnosis) return
    const title = `# ${diagnosis.id}\n\n**${diagnosis.title}.**`
    state.src = `${state.src.replace(/^# .*$/m, () => title)}\n${diagnosisSections(diagnosis)}`
  })
  md.core.ruler.push('site-links', state => {
    const tokens = state.tokens.flatMap(({ children }) => children ?? [])
    for (const token of tokens.filter(({ type }) => type === 'link_open')) {
      token.attrSet('href', siteLink(String(token.attrGet('href')), fileOf(state.env)))
    }
    for (const token of tokens.filter(({ type }) => type === 'image')) {
      const source = String(token.attrGet('src'))
      if (!PICTURE.test(source) || /^\w+:/.test(source)) continue
      token.attrSet('src', `/${path.join(path.dirname(fileOf(state.env)), source)}`)
    }
  })
}
