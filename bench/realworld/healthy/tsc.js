'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'tsc checks the sources of rxjs and a project of 400 files',
  packages: { typescript: '5.9.3', rxjs: '7.8.2' },
  limitMib: 1024,
  seconds: 120,
  load: 'one build',
  prepare (folder) {
    fs.rmSync(path.join(folder, 'src'), { recursive: true, force: true })
    fs.cpSync(path.join(folder, 'node_modules/rxjs/src'), path.join(folder, 'src'), {
      recursive: true
    })
    for (let i = 0; i < 400; i++) {
      const fields = Array.from({ length: 40 }, (_, k) => `field${k}: Map<string, T${k % 3}>`)
      fs.writeFileSync(path.join(folder, `src/model${i}.ts`), [
        'type T0 = { a: 1 } | { b: 2 }; type T1 = Partial<T0>; type T2 = Record<keyof T1, T0>',
        `export interface Model${i} { ${fields.join('; ')} }`,
        `export const keys${i} = (m: Model${i}) => Object.entries(m).map(([k, v]) => [k, v.size])`
      ].join('\n'))
    }
    fs.writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({
      compilerOptions: { strict: true, target: 'es2022', module: 'nodenext', outDir: 'out', skipLibCheck: true },
      include: ['src']
    }))
  },
  command: ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json']
}
