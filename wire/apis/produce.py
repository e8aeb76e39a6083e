"""Produce (0): append record batches to partitions."""

from trilogue.wire.schema import Int16, Int32, Int64, Records, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 0, "0-13", "9+"


class ProduceRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            index: Int32
            records: Records | None

        name: String = field("0-12")
        topic_id: Uuid = field("13+")
        partition_data: list[Partition]

    transactional_id: String | None = field("3+", default=None)
    acks: Int16
    timeout_ms: Int32
    topic_data: list[Topic]


class ProduceResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            class RecordError(Struct):
                batch_index: Int32
                batch_index_error_message: String | None = field(default=None)

            class CurrentLeader(Struct):
                leader_id: Int32 = field(default=-1)
                leader_epoch: Int32 = field(default=-1)

            index: Int32
            error_code: Int16 = field()
            base_offset: Int64
            log_append_time_ms: Int64 = field("2+", default=-1)
            log_start_offset: Int64 = field("5+", default=-1)
            record_errors: list[RecordError] = field("8+")
            error_message: String | None = field("8+", default=None)
            current_leader: CurrentLeader = field("10+", tag=0)

        name: String = field("0-12")
        topic_id: Uuid = field("13+")
        partition_responses: list[Partition]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: String | None = field(default=None)

    responses: list[Topic]
    throttle_time_ms: Int32 = field("1+")
    node_endpoints: list[NodeEndpoint] = field("10+", tag=0)
