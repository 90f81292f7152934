'use strict'

/**
 * Parts of the Model Context Protocol's SDK that `memwatch mcp` uses. They are a package of their
 * own, because the SDK brings an HTTP server and ninety packages for a command that most users
 * never start.
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
