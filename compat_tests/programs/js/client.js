// kafkajs, by the rules of program.py: jobs come in as lines, answers go out as JSON.
const crypto = require('node:crypto')
const readline = require('node:readline')
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs')
require('./codecs')

const CODECS = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD,
}
const [bootstrap, ...settings] = process.argv.slice(2)
const pairs = words => Object.fromEntries(words.map(word => word.split(/=(.*)/s).slice(0, 2)))
const common = Object.fromEntries(Object.entries(pairs(settings)).map(([name, value]) => [name, JSON.parse(value)]))
const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.NOTHING, ...common })

const hex = data => (data === null || data === undefined ? null : Buffer.from(data).toString('hex'))
const unhex = word => (word === '-' ? null : Buffer.from(word, 'hex'))
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

let admin = null
async function administrator() {
  if (admin === null) {
    admin = kafka.admin()
    await admin.connect()
  }
  return admin
}

function messages(text, partition, timestamp) {
  return text.split(';').map((record, index) => {
    const [key, value, ...rest] = record.split(',').map(unhex)
    const headers = {}
    for (let i = 0; i < rest.length; i += 2) (headers[rest[i].toString()] ??= []).push(rest[i + 1])
    const stamp = timestamp ? { timestamp: String(Number(timestamp) + 1000 * index) } : {}
    return { key, value, headers, partition, ...stamp }
  })
}

function told({ offset, timestamp, key, value, headers }) {
  const pairs = Object.entries(headers ?? {}).flatMap(([name, values]) =>
    [values].flat().map(each => [name, hex(each)])
  )
  return { offset: Number(offset), timestamp: Number(timestamp), key: hex(key), value: hex(value), headers: pairs }
}

async function produce({ topic, records, partition = 0, codec = 'none', acks = 'all', idempotent, timestamp }) {
  const wishes = messages(records, Number(partition), timestamp)
  const options = idempotent === 'true' ? { idempotent: true, maxInFlightRequests: 1 } : {}
  const producer = kafka.producer(options)
  await producer.connect()
  const answer = await producer.send({
    topic, messages: wishes, acks: acks === 'all' ? -1 : Number(acks), compression: CODECS[codec],
  })
  await producer.disconnect()
  const first = answer?.[0]?.baseOffset
  return { offsets: wishes.map((_, index) => (first === undefined ? -1 : Number(first) + index)) }
}

// There is no reading without a group: every reading has its own.
async function consume({ topic, count, partition = 0, start = '0', isolation = 'read_uncommitted' }) {
  const consumer = kafka.consumer({
    groupId: `reads-${crypto.randomUUID()}`,
    readUncommitted: isolation === 'read_uncommitted',
    maxBytesPerPartition: 20 << 20,
    maxBytes: 30 << 20,
    maxWaitTimeInMs: 200,
  })
  const found = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition: from, message }) => {
      if (from === Number(partition)) found.push(told(message))
    },
  })
  consumer.seek({ topic, partition: Number(partition), offset: start })
  for (const deadline = Date.now() + 15000; found.length < Number(count) && Date.now() < deadline; ) await pause(20)
  await consumer.disconnect()
  return { records: found.slice(0, Number(count)) }
}

async function position({ topic, at, partition = 0 }) {
  const admin = await administrator()
  const known = at === 'earliest' || at === 'latest'
  const all = known ? await admin.fetchTopicOffsets(topic) : await admin.fetchTopicOffsetsByTimestamp(topic, Number(at))
  const one = all.find(each => each.partition === Number(partition))
  return { position: Number(at === 'earliest' ? one.low : one.offset) }
}

async function transact({ topic, records, name, end }) {
  const producer = kafka.producer({ transactionalId: name, maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages: messages(records, 0) })
  await (end === 'commit' ? transaction.commit() : transaction.abort())
  await producer.disconnect()
}

// -- a member of a group: messages come by themselves, and wait for somebody to poll ---------------

const member = { consumer: null, assignment: [], waiting: [], read: {} }

async function join({ topic, group }) {
  const consumer = kafka.consumer({
    groupId: group, sessionTimeout: 6000, heartbeatInterval: 500, rebalanceTimeout: 10000, maxWaitTimeInMs: 200,
  })
  Object.assign(member, { consumer, topic, assignment: [], waiting: [], read: {} })
  consumer.on(consumer.events.REBALANCING, () => { member.assignment = [] })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    member.assignment = payload.memberAssignment[topic] ?? []
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachMessage: async each => { member.waiting.push(each) } })
}

async function poll({ seconds }) {
  for (const end = Date.now() + Number(seconds) * 1000; !member.waiting.length && Date.now() < end; ) await pause(20)
  const found = member.waiting.splice(0)
  for (const { partition, message } of found) member.read[partition] = String(Number(message.offset) + 1)
  return { assignment: [...member.assignment].sort(), values: found.map(each => hex(each.message.value)) }
}

async function commit() {
  const { topic, read } = member
  await member.consumer.commitOffsets(
    Object.entries(read).map(([partition, offset]) => ({ topic, partition: Number(partition), offset }))
  )
}

const leave = async () => member.consumer.disconnect()

// -- administration --------------------------------------------------------------------------------

const topicSettings = (topic, rest) => ({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, ...rest }] })

const verbs = {
  version: async () => ({ version: require('kafkajs/package.json').version }),
  produce, consume, position, transact, join, poll, commit, leave,

  create: async ({ topic, partitions = '1', ...configs }) => {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const wish = { topic, numPartitions: Number(partitions), replicationFactor: 1, configEntries }
    await (await administrator()).createTopics({ topics: [wish] })
  },
  delete: async ({ topic }) => (await administrator()).deleteTopics({ topics: [topic] }),
  grow: async ({ topic, partitions }) => {
    await (await administrator()).createPartitions({ topicPartitions: [{ topic, count: Number(partitions) }] })
  },
  topics: async () => ({ topics: (await (await administrator()).listTopics()).sort() }),
  describe: async ({ topic }) => {
    const { topics } = await (await administrator()).fetchTopicMetadata({ topics: [topic] })
    return { partitions: topics[0].partitions.map(each => each.partitionId).sort() }
  },
  configs: async ({ topic, name }) => {
    const admin = await administrator()
    const { resources } = await admin.describeConfigs(topicSettings(topic, { configNames: [name] }))
    return { value: resources[0].configEntries[0].configValue }
  },
  alter: async ({ topic, name, value }) => {
    await (await administrator()).alterConfigs(topicSettings(topic, { configEntries: [{ name, value }] }))
  },
  groups: async () => {
    const { groups } = await (await administrator()).listGroups()
    return { groups: groups.map(each => each.groupId).sort() }
  },
  'describe-group': async ({ group }) => {
    const { groups } = await (await administrator()).describeGroups([group])
    return { state: groups[0].state, members: groups[0].members.length }
  },
  'group-offsets': async ({ group, topic }) => {
    const [found] = await (await administrator()).fetchOffsets({ groupId: group, topics: [topic] })
    return { offsets: Object.fromEntries(found.partitions.map(each => [each.partition, Number(each.offset)])) }
  },
  'delete-group': async ({ group }) => { await (await administrator()).deleteGroups([group]) },
  'delete-records': async ({ topic, partition = 0, offset }) => {
    const admin = await administrator()
    await admin.fetchTopicOffsets(topic) // else it does not know the leader
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: Number(partition), offset }] })
    return { low_watermark: (await position({ topic, at: 'earliest', partition })).position }
  },
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const [verb, ...words] = line.split(' ')
    let answer
    try {
      answer = (await verbs[verb](pairs(words))) ?? {}
    } catch (problem) { // whatever a client can throw is an answer here
      answer = { error: `${problem.name}: ${problem.message}` }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
  process.exit(0)
}

main()
