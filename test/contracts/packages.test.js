'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { SCOPE, folders, generated, nameOf, withScope } = require('../../scripts/packages')

const ROOT = path.join(__dirname, '../..')
const manifestOf = folder =>
  JSON.parse(fs.readFileSync(path.join(ROOT, folder, 'package.json'), 'utf8'))
const lines = new Map(
  execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' })
    .split('\0')
    // Files with text. Outputs of scripts may contain any text, and are left out.
    .filter(file => /\.(c?js|mjs|json|md|ya?ml|txt|sh)$|file$/.test(file))
    .filter(file => !/^test\/recordings\/|results\.json$|-lock\.json$/.test(file))
    .filter(file => file !== path.relative(ROOT, __filename))
    .map(file => [file, fs.readFileSync(path.join(ROOT, file), 'utf8').split('\n')])
)
/** @param {RegExp} pattern */
const linesWith = pattern =>
  [...lines].flatMap(([file, of]) =>
    of.flatMap((line, i) => (pattern.test(line) ? [`${file}:${i + 1}: ${line.trim()}`] : [])))

describe('each package', () => {
  it.each(folders)('%s names its owner and contains its licence', folder => {
    const manifest = manifestOf(folder)
    expect(manifest).toMatchObject({
      name: nameOf(folder),
      version: manifestOf('.').version,
      license: 'MIT',
      description: expect.any(String),
      homepage: expect.stringMatching(/^https:/),
      bugs: expect.stringMatching(/^https:/),
      repository: { type: 'git', directory: folder },
      engines: { node: expect.stringMatching(/^>=/) },
      publishConfig: { access: 'public' }
    })
    expect(manifest.keywords.length).toBeGreaterThan(3)
    expect(manifest.files.length).toBeGreaterThan(0)
    for (const [file, content] of Object.entries(generated)) {
      if (!file.startsWith(`${folder}/`)) continue
      expect({ [file]: fs.readFileSync(path.join(ROOT, file), 'utf8') }).toEqual({
        [file]: content()
      })
    }
    const readme = fs.readFileSync(path.join(ROOT, folder, 'README.md'), 'utf8')
    expect(readme.startsWith(`# ${nameOf(folder)}\n`)).toBe(true)
  })

  it('depends on other packages of memwatch in its own version only', () => {
    const wanted = folders.flatMap(folder => {
      const { dependencies, optionalDependencies, peerDependencies } = manifestOf(folder)
      return Object.entries({ ...dependencies, ...optionalDependencies, ...peerDependencies })
        .filter(([name]) => /memwatch/.test(name))
    })
    expect(wanted.length).toBeGreaterThan(0)
    for (const [name, version] of wanted) {
      expect(folders.map(nameOf)).toContain(name)
      expect(version).toBe(manifestOf('.').version)
    }
  })
})

describe('no text', () => {
  it.each([
    [
      'runs or installs the package `memwatch`, which belongs to somebody else',
      /\b(npx|pnpx|dlx|npm exec( --)?) memwatch\b|\b(npm|pnpm|yarn) (i|install|add)\b[^#`&|;]*(?<![@/\w.])memwatch(?!@(npm|file):|[\w/])/,
      ['npx memwatch run', 'pnpm dlx memwatch', 'npm i -D memwatch', 'yarn add x memwatch@1']
    ],
    [
      'imports anything but `memwatch/agent` without a scope',
      /\b(require|resolve|import)\(['"]memwatch(?!\/agent['"])/,
      ["require('memwatch')", "require('memwatch-engine/text/json')", "import('memwatch/protocol/x')"]
    ],
    [
      'names a package of memwatch without its scope',
      /(?<![\w@/.-])memwatch-(agent|allocator|cli|engine|exporter|lab)(?=['"`]?\/)|\b(npm|pnpm|yarn) (i|install|add)\b.*(?<![\w/])memwatch-[a-z]/,
      ["'memwatch-cli/memwatch.js'", 'npm install memwatch-allocator']
    ],
    [
      'names a package of the scope that does not exist',
      new RegExp(`${SCOPE}/(?!(${folders.join('|')})\\b)\\w`),
      [`npm install ${SCOPE}/all`]
    ]
  ])('%s', (_, pattern, examples) => {
    expect(examples.filter(example => !pattern.test(example))).toEqual([])
    expect(linesWith(pattern)).toEqual([])
  })

  it('is skipped: the test finds names of packages', () => {
    expect(linesWith(new RegExp(`npx ${SCOPE}/cli`)).length).toBeGreaterThan(5)
    expect(linesWith(/memwatch@npm:/).length).toBeGreaterThan(2)
  })
})

it('the scope can be replaced by another one in every file', () => {
  expect(
    withScope(`const SCOPE = '${SCOPE}'\nrequire('${SCOPE}/engine/x') // memwatch`, '@other')
  ).toBe("const SCOPE = '@other'\nrequire('@other/engine/x') // memwatch")
})
