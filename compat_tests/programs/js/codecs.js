// The codecs that kafkajs leaves to others, from packages that nothing has to be compiled for.
const { CompressionCodecs, CompressionTypes } = require('kafkajs')
const lz4 = require('lz4-napi')
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

const zstd = new Promise(resolve => ZstdCodec.run(resolve))

const codec = (compress, decompress) => () => ({
  compress: async encoder => Buffer.from(await compress(encoder.buffer)),
  decompress: async data => Buffer.from(await decompress(data)),
})

CompressionCodecs[CompressionTypes.Snappy] = codec(data => snappy.compress(data), unsnap)
CompressionCodecs[CompressionTypes.LZ4] = codec(lz4.compressFrame, lz4.decompressFrame)
CompressionCodecs[CompressionTypes.ZSTD] = codec(
  async data => new (await zstd).Simple().compress(data),
  async data => new (await zstd).Streaming().decompress(data) // of unknown size
)
