'use strict'

const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js')
const { InMemoryTransport } = require('@modelcontextprotocol/sdk/inMemory.js')
const { callApi, callList } = require('../../cli/program/api')
const { MOST_ANSWER_BYTES } = require('../../cli/mcp/answer')
const { createMcpServer } = require('../../cli/mcp/server')
const { environment } = require('./agent-collector')
const { MEMWATCH } = require('./memwatch')
const { unprintableIn } = require('./strict-readers')

/**
 * Starts `memwatch mcp` as an assistant does: as a separate process, over stdio, with the SDK's
 * client.
 * @param {string[]} args
 */
async function startMcp (args) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MEMWATCH, 'mcp', ...args],
    env: /** @type {Record<string, string>} */ (environment()),
    stderr: 'pipe'
  })
  const client = new Client({ name: 'test', version: '1' })
  let stderr = ''
  transport.stderr?.on('data', chunk => { stderr += chunk })
  await client.connect(transport)
  return {
    client,
    pid: transport.pid,
    /** @returns {string} */
    get stderr () { return stderr },
    call: callsOf(client),
    stop: () => client.close()
  }
}

/**
 * The same server in this process.
 * @param {import('../../cli/program/api').ApiOptions} api
 * @param {{ isRecording?: boolean }} [options]
 */
async function connectMcp (api, { isRecording = false } = {}) {
  const facts = /** @type {any} */ ({
    call: (path, method) => callApi(api, path, method), list: path => callList(api, path)
  })
  const server = createMcpServer(require('../../mcp'), {
    facts, version: '0', isRecording, allowsCaptures: false
  })
  const [here, there] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'test', version: '1' })
  await Promise.all([server.connect(there), client.connect(here)])
  return { call: callsOf(client), stop: () => client.close() }
}

/**
 * Returns a function that calls a tool, and checks the rules for every answer.
 * @param {Client} client
 * @returns {(name: string, given?: object) => Promise<any>} structuredContent, and true if it is an
 *   error
 */
const callsOf = client => async (name, given = {}) => {
  const answer = /** @type {any} */ (
    await client.callTool({ name, arguments: /** @type {any} */ (given) })
  )
  expect(checkAnswer(answer)).toEqual([])
  return { ...answer.structuredContent, isError: answer.isError === true }
}

/**
 * @param {any} answer of a tool
 * @returns {string[]} violated rules
 */
function checkAnswer (answer) {
  const { content, structuredContent } = answer
  const [{ text }] = content
  const [, id, json, end] = /<data-(\w+)>\n(.*)\n<\/data-(\w+)>$/s.exec(text) ?? []
  const isAll = JSON.stringify(JSON.parse(json)) === JSON.stringify(structuredContent)
  return [
    content.length !== 1 && 'more than one text',
    Buffer.byteLength(JSON.stringify(answer)) > MOST_ANSWER_BYTES && 'too long',
    id !== end && 'a block that ends early',
    json.includes('\n') && 'data of several lines',
    unprintableIn(json).length > 0 && 'unprintable text',
    textsIn(structuredContent).some(text => unprintableIn(text).length > 0) &&
      'unprintable structured text',
    textsIn(structuredContent, PASTED).some(text => text.includes('\n')) && 'a text of several lines',
    !isAll && 'text and structured content differ'
  ].filter(breach => breach !== false)
}

/**
 * Texts that memwatch writes for pasting. Their values are quoted for the place of pasting, such as
 * a shell.
 */
const PASTED = ['dockerfile', 'kubernetes', 'code']

/**
 * @param {unknown} value
 * @param {string[]} [without] names of properties
 * @returns {string[]} all keys and texts
 */
function textsIn (value, without = []) {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) =>
    [key, ...without.includes(key) ? [] : textsIn(item, without)])
}

module.exports = { checkAnswer, connectMcp, startMcp, textsIn }
