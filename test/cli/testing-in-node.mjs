import { mock, test } from 'node:test'
import { createRequire } from 'node:module'

const { expectNoLeak } = createRequire(import.meta.url)('@memwatch/cli/testing')

test('retains nothing', async () => {
  await expectNoLeak(async () => JSON.parse('{"rows":[1,2,3]}'))
})

test('leaks', async () => {
  mock.timers.enable()
  const kept = []
  await expectNoLeak(() => { kept.push(Buffer.alloc(9000)) }, { calls: 20 })
})
