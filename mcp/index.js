'use strict'

/**
 * The parts of the Model Context Protocol's SDK that `memwatch mcp` uses. A package of its own, as
 * the SDK brings an HTTP server and ninety packages for an option that most never start.
 */

const { Server } = require('@modelcontextprotocol/sdk/server/index.js')
const { StdioServerTransport } = require('@modelcontextprotocol/sdk/server/stdio.js')
const { CallToolRequestSchema, ListToolsRequestSchema } = require('@modelcontextprotocol/sdk/types.js')
const { AjvJsonSchemaValidator } = require('@modelcontextprotocol/sdk/validation/ajv')

module.exports = {
  AjvJsonSchemaValidator,
  CallToolRequestSchema,
  ListToolsRequestSchema,
  Server,
  StdioServerTransport
}
