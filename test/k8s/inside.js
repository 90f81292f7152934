'use strict'

/**
 * `node inside.js PLACE`: the first process of the cluster's namespaces. It starts Kubernetes, runs
 * the scenarios and ends; the kernel then ends all other processes in these namespaces. With --keep
 * in PLACE it stays until its parent ends.
 */

const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { startCluster } = require('./servers')
const { say } = require('./tools')

async function main () {
  const place = JSON.parse(process.argv[2])
  process.stdin.resume().on('close', () => process.exit(1))
  const began = Date.now()
  await startCluster(place, text => say(`${text}, ${((Date.now() - began) / 1000).toFixed(0)} s`))
  const jest = spawn(
    process.execPath,
    [
      require.resolve('jest/bin/jest'),
      '--config',
      path.join(__dirname, 'jest.config.js'),
      ...place.jestArgs
    ],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: {
        ...process.env,
        K8S_PLACE: process.argv[2],
        KUBECONFIG: path.join(place.folder, 'kubeconfig')
      }
    }
  )
  const [code] = await once(jest, 'exit')
  if (place.keep) process.send?.('kept')
  else process.exit(code ?? 1)
  process.exitCode = code ?? 1
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
