export default { cacheDir: process.env.SUITE_CACHE, test: { include: ['fake-timers.vitest.mjs'] } }
