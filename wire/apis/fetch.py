"""Fetch (1): read record batches; consumers and followers both do."""

from trilogue.wire.schema import (
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    field,
)

KEY, VERSIONS, FLEXIBLE = 1, "0-18", "12+"


class FetchRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class ReplicaState(Struct):
        replica_id: Int32 = field(default=-1)
        replica_epoch: Int64 = field(default=-1)

    class Topic(Struct):
        class Partition(Struct):
            partition: Int32
            current_leader_epoch: Int32 = field("9+", default=-1)
            fetch_offset: Int64
            last_fetched_epoch: Int32 = field("12+", default=-1)
            log_start_offset: Int64 = field("5+", default=-1)
            partition_max_bytes: Int32
            replica_directory_id: Uuid = field("17+", tag=0)
            high_watermark: Int64 = field("18+", default=9223372036854775807, tag=1)

        topic: String = field("0-12")
        topic_id: Uuid = field("13+")
        partitions: list[Partition]

    class ForgottenTopic(Struct):
        topic: String = field("7-12")
        topic_id: Uuid = field("13+")
        partitions: list[Int32]

    cluster_id: String | None = field("12+", default=None, tag=0)
    replica_id: Int32 = field("0-14", default=-1)
    replica_state: ReplicaState = field("15+", tag=1)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = field("3+", default=2**31 - 1)
    isolation_level: Int8 = field("4+")
    session_id: Int32 = field("7+")
    session_epoch: Int32 = field("7+", default=-1)
    topics: list[Topic]
    forgotten_topics_data: list[ForgottenTopic] = field("7+")
    rack_id: String = field("11+")


class FetchResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            class DivergingEpoch(Struct):
                epoch: Int32 = field(default=-1)
                end_offset: Int64 = field(default=-1)

            class CurrentLeader(Struct):
                leader_id: Int32 = field(default=-1)
                leader_epoch: Int32 = field(default=-1)

            class SnapshotId(Struct):
                end_offset: Int64 = field(default=-1)
                epoch: Int32 = field(default=-1)

            class AbortedTransaction(Struct):
                producer_id: Int64
                first_offset: Int64

            partition_index: Int32
            error_code: Int16 = field()
            high_watermark: Int64
            last_stable_offset: Int64 = field("4+", default=-1)
            log_start_offset: Int64 = field("5+", default=-1)
            diverging_epoch: DivergingEpoch = field("12+", tag=0)
            current_leader: CurrentLeader = field("12+", tag=1)
            snapshot_id: SnapshotId = field("12+", tag=2)
            aborted_transactions: list[AbortedTransaction] | None = field("4+")
            preferred_read_replica: Int32 = field("11+", default=-1)
            records: Records | None

        topic: String = field("0-12")
        topic_id: Uuid = field("13+")
        partitions: list[Partition]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: String | None = field(default=None)

    throttle_time_ms: Int32 = field("1+")
    error_code: Int16 = field("7+")
    session_id: Int32 = field("7+")
    responses: list[Topic]
    node_endpoints: list[NodeEndpoint] = field("16+", tag=0)
