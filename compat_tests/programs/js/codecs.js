// The codecs that kafkajs leaves to others, from packages without native code.
const { CompressionCodecs, CompressionTypes } = require('kafkajs')
const lz4 = require('lz4js')
const xxh = require('lz4js/xxh32')
const snappy = require('snappyjs')
const { ZstdCodec } = require('zstd-codec')

const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])
const XERIAL_HEADER_BYTES = 16

// Java frames its blocks: a header, then the size of each before it.
function unsnap(data) {
  if (!data.subarray(0, XERIAL.length).equals(XERIAL)) return Buffer.from(snappy.uncompress(data))
  const parts = []
  for (let at = XERIAL_HEADER_BYTES; at < data.length; ) {
    const end = at + 4 + data.readInt32BE(at)
    parts.push(Buffer.from(snappy.uncompress(data.subarray(at + 4, end))))
    at = end
  }
  return Buffer.concat(parts)
}

// The package says that its blocks depend on each other, which Java cannot read.  As long as there is only one they do
// not, so we say so, in the flags and in the checksum of the header.
const LZ4_BLOCK_BYTES = 4 << 20
const LZ4_INDEPENDENT = 0x20

function lz4Compress(data) {
  if (data.length > LZ4_BLOCK_BYTES) throw new Error('more than a block')
  const frame = Buffer.from(lz4.compress(data))
  frame[4] |= LZ4_INDEPENDENT
  frame[6] = (xxh.hash(0, frame, 4, 2) >> 8) & 0xff
  return frame
}

const zstd = new Promise(resolve => ZstdCodec.run(resolve))

const codec = (compress, decompress) => () => ({
  compress: async encoder => Buffer.from(await compress(encoder.buffer)),
  decompress: async data => Buffer.from(await decompress(data)),
})

CompressionCodecs[CompressionTypes.Snappy] = codec(data => snappy.compress(data), unsnap)
CompressionCodecs[CompressionTypes.LZ4] = codec(lz4Compress, data => lz4.decompress(data))
CompressionCodecs[CompressionTypes.ZSTD] = codec(
  async data => new (await zstd).Simple().compress(data),
  async data => new (await zstd).Streaming().decompress(data) // of unknown size
)
