"""DescribeQuorum (55): the state of the quorum that keeps the cluster's metadata."""

from trilogue.wire.schema import Int16, Int32, Int64, Request, Response, String, Struct, UInt16, Uuid, field

KEY, VERSIONS, FLEXIBLE = 55, "0-2", "0+"


class DescribeQuorumRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32

        topic_name: String
        partitions: list[Partition]

    topics: list[Topic]


class ReplicaState(Struct):
    replica_id: Int32
    replica_directory_id: Uuid = field("2+")
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = field("1+", default=-1)
    last_caught_up_timestamp: Int64 = field("1+", default=-1)


class DescribeQuorumResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            error_code: Int16 = field()
            error_message: String | None = field("2+")
            leader_id: Int32
            leader_epoch: Int32
            high_watermark: Int64
            current_voters: list[ReplicaState]
            observers: list[ReplicaState]

        topic_name: String
        partitions: list[Partition]

    class Node(Struct):
        class Listener(Struct):
            name: String
            host: String
            port: UInt16

        node_id: Int32
        listeners: list[Listener]

    error_code: Int16 = field()
    error_message: String | None = field("2+")
    topics: list[Topic]
    nodes: list[Node] = field("2+")
