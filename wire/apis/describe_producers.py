"""DescribeProducers (61): the producers that a partition remembers."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 61, "0", "0+"


class DescribeProducersRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        name: String
        partition_indexes: list[Int32]

    topics: list[Topic]


class DescribeProducersResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            class ActiveProducer(Struct):
                producer_id: Int64
                producer_epoch: Int32
                last_sequence: Int32 = field(default=-1)
                last_timestamp: Int64 = field(default=-1)
                coordinator_epoch: Int32
                current_txn_start_offset: Int64 = field(default=-1)

            partition_index: Int32
            error_code: Int16 = field()
            error_message: String | None = field(default=None)
            active_producers: list[ActiveProducer]

        name: String
        partitions: list[Partition]

    throttle_time_ms: Int32 = field()
    topics: list[Topic]
