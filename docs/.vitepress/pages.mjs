import { createRequire } from 'node:module'
import { readdirSync } from 'node:fs'

/** The pages of the site: file of the repository → address, and the sidebar that lists them. */

const require = createRequire(import.meta.url)
/** @type {{ diagnoses: readonly import('../../engine/diagnoses/define-diagnosis').Diagnosis[] }} */
const { diagnoses } = require('../../engine/diagnoses')

/** @param {import('../../engine/diagnoses/define-diagnosis').Diagnosis} diagnosis */
export const pageOf = ({ id, runbook }) =>
  runbook ? `alerts/runbooks/${runbook}.md` : `docs/${id}.md`

const namesIn = (/** @type {string} */ folder) =>
  readdirSync(new URL(`../../${folder}`, import.meta.url)).filter(name => name.endsWith('.md'))

/** @type {[title: string, file: string, address: string][][]} */
const [start, howTos, operation, reference, evidence, project] = [
  [
    ['What memwatch is', 'docs/index.md', 'index'],
    ['Quick starts', 'docs/quick-start.md', 'quick-start'],
    ['Concepts', 'docs/concepts.md', 'concepts'],
    ['Questions', 'docs/faq.md', 'faq'],
    ['When something does not work', 'docs/troubleshooting.md', 'troubleshooting'],
    ['Glossary', 'docs/glossary.md', 'glossary'],
    ['Comparison', 'docs/comparison.md', 'comparison']
  ],
  [
    ['Take RSS apart', 'docs/rss.md', 'rss'],
    ['Attach to a running process', 'docs/attach.md', 'attach'],
    ['Test a fix', 'docs/try.md', 'try'],
    ['Watch for leaks in CI', 'docs/ci.md', 'ci'],
    ['Gate memory in CI and tests', 'docs/gate.md', 'gate'],
    ['Name the line of code', 'docs/captures.md', 'captures'],
    ['Get captures out', 'docs/egress.md', 'egress'],
    ['Plan an upgrade or a limit', 'docs/plan.md', 'plan'],
    ['Size a container', 'docs/right-size.md', 'right-size'],
    ['Run it in Kubernetes', 'deploy/README.md', 'kubernetes'],
    ['Send OTLP', 'docs/otlp.md', 'otlp'],
    ['Report on a fleet', 'docs/fleet.md', 'fleet'],
    ['Use with an AI assistant', 'docs/mcp.md', 'mcp'],
    ['Come from prom-client', 'docs/prom-client.md', 'prom-client']
  ],
  [
    ['In production', 'docs/production.md', 'production'],
    ['Alerts', 'alerts/README.md', 'alerts'],
    ['Alerts without an agent', 'alerts/prom-client.md', 'alerts-prom-client'],
    ['Dashboards', 'dashboards/README.md', 'dashboards'],
    ['Security', 'SECURITY.md', 'security'],
    ['Compatibility', 'docs/compatibility.md', 'compatibility'],
    ['Upgrade notes', 'docs/upgrade.md', 'upgrade'],
    ['Changelog', 'CHANGELOG.md', 'changelog']
  ],
  [
    ['Signals and limits', 'docs/diagnoses.md', 'diagnoses'],
    ['Command line', 'docs/commands.md', 'commands'],
    ['Configuration', 'docs/config.md', 'config'],
    ['Metrics', 'docs/metrics.md', 'metrics'],
    ['API', 'docs/api.md', 'api'],
    ['Sources of memwatch diagnose', 'docs/sources.md', 'sources'],
    ['Capture rules', 'docs/capture-rules.md', 'capture-rules'],
    ['Follow-up of fixes', 'docs/follow-up.md', 'follow-up'],
    ['Causes of death', 'docs/deaths.md', 'deaths'],
    ['Known bugs', 'docs/known-bugs.md', 'known-bugs'],
    ['Wire protocol', 'docs/wire-protocol.md', 'wire-protocol'],
    ['The lab', 'docs/lab.md', 'lab']
  ],
  [
    ['Accuracy', 'docs/accuracy.md', 'accuracy'],
    ['Unseen apps', 'docs/unseen-apps.md', 'unseen-apps'],
    ['Published leaks', 'docs/realworld.md', 'realworld'],
    ['Holders of leaks', 'docs/retainers.md', 'retainers'],
    ['Published fixes', 'docs/published.md', 'published'],
    ['GC logs and other sources', 'docs/sources-accuracy.md', 'sources-accuracy'],
    ['GC counts', 'docs/gc-count.md', 'gc-count'],
    ['RSS breakdown', 'docs/anatomy.md', 'anatomy'],
    ['Cost for the app', 'docs/overhead.md', 'overhead'],
    ['Cost as the app grows', 'docs/growth.md', 'growth'],
    ['Capacity of the exporter', 'docs/exporter.md', 'exporter'],
    ['Attacks', 'docs/attack.md', 'attack']
  ],
  [
    ['Architecture', 'ARCHITECTURE.md', 'architecture'],
    ['Contributing', 'CONTRIBUTING.md', 'contributing'],
    ['Decisions', 'docs/decisions/README.md', 'decisions/index']
  ]
]

/** Runbooks of alerts that no diagnosis raises. */
const otherRunbooks = namesIn('alerts/runbooks')
  .filter(name => !diagnoses.some(({ runbook }) => `${runbook}.md` === name))
const decisions = namesIn('docs/decisions').filter(name => name !== 'README.md')

/** @type {Record<string, string>} file → page, both relative and with .md */
export const routes = Object.fromEntries([
  ...[start, howTos, operation, reference, evidence, project].flat()
    .map(([, file, address]) => [file, `${address}.md`]),
  ...diagnoses.map(diagnosis => [pageOf(diagnosis), `diagnoses/${diagnosis.id}.md`]),
  ...otherRunbooks.map(name => [`alerts/runbooks/${name}`, `runbooks/${name}`]),
  ...decisions.map(name => [`docs/decisions/${name}`, `decisions/${name}`])
])

/**
 * @param {string} text
 * @param {[string, string, string][]} pages
 * @param {boolean} [collapsed]
 */
const section = (text, pages, collapsed) => ({
  text,
  collapsed,
  items: pages.map(([text, , address]) => ({ text, link: `/${address.replace(/index$/, '')}` }))
})

export const sidebar = [
  section('Start', start),
  section('Diagnoses', diagnoses.map(({ id }) => [id, '', `diagnoses/${id}`]), false),
  section('How to', howTos),
  section('Operation', operation),
  section('Reference', reference),
  section('Evidence', evidence, true),
  section('Other runbooks', otherRunbooks.map(name =>
    [name.replace('.md', ''), '', `runbooks/${name.replace('.md', '')}`]), true),
  section('Project', project, true)
]
