"""Metadata (3): who the brokers are, and which of them leads what."""

from trilogue.wire.schema import Bool, Int16, Int32, Request, Response, String, Struct, Uuid, field

KEY, VERSIONS, FLEXIBLE = 3, "0-13", "9+"


class MetadataRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        topic_id: Uuid = field("10+")
        name: String | None = field(nullable="10+")

    topics: list[Topic] | None = field(nullable="1+")
    allow_auto_topic_creation: Bool = field("4+", default=True)
    include_cluster_authorized_operations: Bool = field("8-10")
    include_topic_authorized_operations: Bool = field("8+")


class MetadataResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Broker(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: String | None = field("1+", default=None)

    class Topic(Struct):
        class Partition(Struct):
            error_code: Int16 = field()
            partition_index: Int32
            leader_id: Int32
            leader_epoch: Int32 = field("7+", default=-1)
            replica_nodes: list[Int32]
            isr_nodes: list[Int32]
            offline_replicas: list[Int32] = field("5+")

        error_code: Int16 = field()
        name: String | None = field(nullable="12+")
        topic_id: Uuid = field("10+")
        is_internal: Bool = field("1+")
        partitions: list[Partition]
        topic_authorized_operations: Int32 = field("8+", default=-(2**31))

    throttle_time_ms: Int32 = field("3+")
    brokers: list[Broker]
    cluster_id: String | None = field("2+", default=None)
    controller_id: Int32 = field("1+", default=-1)
    topics: list[Topic]
    cluster_authorized_operations: Int32 = field("8-10", default=-(2**31))
    error_code: Int16 = field("13+")
