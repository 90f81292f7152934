'use strict'

const fs = require('node:fs')

/** Pages have 4 to 64 KiB, so segments at this offset can be mapped on all machines. */
const PAGE_BYTES = 65_536
/** Machine code of a function that returns `exports`, its second argument. */
const RETURN_EXPORTS = {
  x64: Buffer.from('4889f0c3', 'hex'),
  arm64: Buffer.from('e00301aac0035fd6', 'hex')
}
const INIT = 'napi_register_module_v1'

/** @param {(number | bigint)[]} values 64-bit words */
const words = values => Buffer.from(BigUint64Array.from(values, BigInt).buffer)

/**
 * Writes a native addon without a compiler: Node.js loads it, its exports are empty, and it names
 * imports without calling them. The layout is a text segment with machine code, symbols and names,
 * and a data segment with the dynamic section. elf(5).
 * @param {string} file
 * @param {object} [options]
 * @param {string[]} [options.imports] mangled names
 * @param {number} [options.fillerBytes] filler between the code and the names, as addons have
 *   megabytes
 */
function writeAddon (file, { imports = [], fillerBytes = 0 } = {}) {
  const code = RETURN_EXPORTS[/** @type {keyof typeof RETURN_EXPORTS} */ (process.arch)]
  const symbols = [INIT, ...imports]
  const names = Buffer.from(['', ...symbols, ''].join('\0'), 'latin1')
  let nameAt = 1
  const nameOffsets = symbols.map(name => {
    const at = nameAt
    nameAt += Buffer.byteLength(name, 'latin1') + 1
    return at
  })

  const codeAt = 512
  const hashAt = 1024
  // One bucket, whose chain runs through all symbols.
  const hash = Buffer.from(
    Uint32Array.from([
      1, symbols.length + 1,
      1,
      0, ...symbols.map((_, i) => (i + 1 < symbols.length ? i + 2 : 0))
    ]).buffer
  )
  const symbolsAt = (hashAt + hash.length + 7) & ~7
  const table = Buffer.alloc(24 * (symbols.length + 1))
  for (const [i, at] of nameOffsets.entries()) {
    const isDefined = i === 0
    table.writeUInt32LE(at, 24 * (i + 1))
    table.writeUInt8(isDefined ? 0x12 : 0x10, 24 * (i + 1) + 4) // global; a function, or unknown
    table.writeUInt16LE(isDefined ? 1 : 0, 24 * (i + 1) + 6)
    table.writeBigUInt64LE(BigInt(isDefined ? codeAt : 0), 24 * (i + 1) + 8)
    table.writeBigUInt64LE(BigInt(isDefined ? code.length : 0), 24 * (i + 1) + 16)
  }
  const namesAt = symbolsAt + table.length + fillerBytes
  const textBytes = namesAt + names.length
  const dataAt = Math.ceil(textBytes / PAGE_BYTES) * PAGE_BYTES
  // DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL.
  const dynamic = words([4, hashAt, 5, namesAt, 6, symbolsAt, 10, names.length, 11, 24, 0, 0])

  const header = Buffer.alloc(64)
  header.write('\x7fELF\x02\x01\x01', 'latin1')
  header.writeUInt16LE(3, 16) // a shared object
  header.writeUInt16LE(process.arch === 'x64' ? 62 : 183, 18)
  header.writeUInt32LE(1, 20)
  header.writeBigUInt64LE(64n, 32) // program headers follow
  header.writeUInt16LE(64, 52)
  header.writeUInt16LE(56, 54)
  header.writeUInt16LE(4, 56)
  /**
   * @param {number} type
   * @param {number} flags
   * @param {number} at
   * @param {number} bytes
   * @param {number} align
   */
  const segment = (type, flags, at, bytes, align) =>
    words([type + flags * 2 ** 32, at, at, at, bytes, bytes, align])
  const READ = 4
  const WRITE = 2
  const EXECUTE = 1

  const content = Buffer.alloc(dataAt + dynamic.length)
  Buffer.concat([
    header,
    segment(1, READ | EXECUTE, 0, textBytes, PAGE_BYTES),
    segment(1, READ | WRITE, dataAt, dynamic.length, PAGE_BYTES),
    segment(2, READ | WRITE, dataAt, dynamic.length, 8),
    segment(0x6474e551, READ | WRITE, 0, 0, 16) // the stack is not executable
  ]).copy(content)
  code.copy(content, codeAt)
  hash.copy(content, hashAt)
  table.copy(content, symbolsAt)
  names.copy(content, namesAt)
  dynamic.copy(content, dataAt)
  fs.writeFileSync(file, content)
}

module.exports = { writeAddon }
