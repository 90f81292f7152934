'use strict'

const net = require('node:net')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { Duplex } = require('node:stream')

/**
 * Script that copies bytes between its own pipes and a port. nsenter runs it in another network
 * namespace.
 */
const RELAY = `
const socket = require('node:net').connect(Number(process.argv[2]), process.argv[1])
socket.on('error', () => process.exit(1)).on('close', () => process.exit(0))
process.stdin.pipe(socket).pipe(process.stdout)`

/**
 * Connects to a port in the network namespace of a process.
 * @param {import('./subject').Subject} subject
 * @param {{ host: string, port: number }} address
 * @returns {Duplex}
 */
function connectInside (subject, { host, port }) {
  if (subject.sharesNamespace('net')) return net.connect({ host, port })
  const relay = spawn(
    'nsenter',
    [
      '--target', String(subject.pid), '--net', '--',
      process.execPath, '-e', RELAY, host, String(port)
    ],
    { stdio: ['pipe', 'pipe', 'ignore'], env: { ...process.env, NODE_OPTIONS: '' } }
  )
  const duplex = Duplex.from({ readable: relay.stdout, writable: relay.stdin })
  relay.on('error', error => duplex.destroy(error))
  duplex.on('close', () => relay.kill())
  return duplex
}

/**
 * Checks the right to enter the network namespace of a process, before a signal opens a port in it.
 * @param {import('./subject').Subject} subject
 * @throws {import('./refusal').Refusal}
 */
async function checkNetwork (subject) {
  if (subject.sharesNamespace('net')) return
  const trial = spawn('nsenter', ['--target', String(subject.pid), '--net', '--', 'true'],
    { stdio: 'ignore' })
  const [status] = await once(trial, 'exit').catch(() => [null])
  if (status !== 0) {
    subject.refuse(
      'is in another network namespace, which this user cannot enter with nsenter: run memwatch as ' +
        'root on that machine, or in a container with the network of the process'
    )
  }
}

module.exports = { connectInside, checkNetwork }
