"""ShareFetch (78): acquire records for a share group, and acknowledge earlier ones (KIP-932)."""

from trilogue.wire.schema import (
    Bool,
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

KEY, VERSIONS, FLEXIBLE = 78, "0-2", "0+"


class ShareFetchRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            class AcknowledgementBatche(Struct):
                first_offset: Int64
                last_offset: Int64
                acknowledge_types: list[Int8]

            partition_index: Int32
            partition_max_bytes: Int32 = field("0")
            acknowledgement_batches: list[AcknowledgementBatche]

        topic_id: Uuid
        partitions: list[Partition]

    class ForgottenTopic(Struct):
        topic_id: Uuid
        partitions: list[Int32]

    group_id: String | None = field(default=None)
    member_id: String | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = field(default=2**31 - 1)
    max_records: Int32 = field("1+")
    batch_size: Int32 = field("1+")
    share_acquire_mode: Int8 = field("2+")
    is_renew_ack: Bool = field("2+")
    topics: list[Topic]
    forgotten_topics_data: list[ForgottenTopic]


class ShareFetchResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            class CurrentLeader(Struct):
                leader_id: Int32
                leader_epoch: Int32

            class AcquiredRecords(Struct):
                first_offset: Int64
                last_offset: Int64
                delivery_count: Int16

            partition_index: Int32
            error_code: Int16 = field()
            error_message: String | None = field(default=None)
            acknowledge_error_code: Int16
            acknowledge_error_message: String | None = field(default=None)
            current_leader: CurrentLeader
            records: Records | None = field(nullable="0")
            acquired_records: list[AcquiredRecords]

        topic_id: Uuid
        partitions: list[Partition]

    class NodeEndpoint(Struct):
        node_id: Int32
        host: String
        port: Int32
        rack: String | None = field(default=None)

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)
    acquisition_lock_timeout_ms: Int32 = field("1+")
    responses: list[Topic]
    node_endpoints: list[NodeEndpoint]
