'use strict'

const fs = require('node:fs')
const path = require('node:path')

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'the development server of vite',
  packages: { vite: '7.1.7', vue: '3.5.22', '@vitejs/plugin-vue': '6.0.1' },
  limitMib: 1024,
  load: '30 requests a second for modules, one file changed each 5 s',
  prepare (folder) {
    fs.mkdirSync(path.join(folder, 'src'), { recursive: true })
    for (let i = 0; i < 60; i++) {
      const text = `<script setup>import { ref } from 'vue'; const n = ref(${i})</script>` +
        '<template><button @click="n++">{{ n }}</button></template><style scoped>a { b: c }</style>'
      fs.writeFileSync(path.join(folder, `src/Part${i}.vue`), text)
    }
    fs.writeFileSync(path.join(folder, 'index.html'), '<script type="module" src="/src/Part0.vue">')
  },
  async app ({ port }) {
    const { createServer } = await import('vite')
    const { default: vue } = await import('@vitejs/plugin-vue')
    const server = { port, host: '127.0.0.1' }
    await (await createServer({ plugins: [vue()], server, logLevel: 'error' })).listen()
  },
  traffic ({ port, perSecond, request }) {
    const headers = { accept: '*/*', 'sec-fetch-dest': 'script' }
    perSecond(30, n => request(port, { path: `/src/Part${n % 60}.vue`, headers }))
    setInterval(() => fs.existsSync('src/Part1.vue') && fs.appendFileSync('src/Part1.vue', '\n'), 5000)
  }
}
