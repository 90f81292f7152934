'use strict'

const { requestsPerSecondAt } = require('../../lab/load')

describe('the rate of the load', () => {
  const requests = [{ method: 'GET', path: '/' }]
  const port = 0
  const bursts = {
    port,
    requests,
    repeat: true,
    phases: [
      { seconds: 12, perSecond: 5 },
      { seconds: 3, perSecond: 600 }
    ]
  }
  const ramp = {
    port,
    requests,
    phases: [{ seconds: 40, perSecond: 60, from: 0.1 }, { perSecond: 60 }]
  }

  test.each([
    [
      'steady',
      { port, requests, phases: [{ perSecond: 150 }] },
      [
        [0, 150],
        [1e6, 150]
      ]
    ],
    [
      'phases that repeat',
      bursts,
      [
        [0, 5],
        [11.99, 5],
        [12, 600],
        [14.99, 600],
        [15, 5],
        [27, 600]
      ]
    ],
    [
      'a ramp that stays',
      ramp,
      [
        [0, 6],
        [20, 33],
        [40, 60],
        [1e6, 60]
      ]
    ],
    [
      'the rate after the last phase',
      { port, requests, phases: [{ seconds: 1, perSecond: 7 }] },
      [
        [0, 7],
        [2, 7]
      ]
    ]
  ])('%s', (name, load, expected) => {
    for (const [seconds, perSecond] of expected) {
      expect(requestsPerSecondAt(load, seconds)).toBeCloseTo(perSecond)
    }
  })
})
