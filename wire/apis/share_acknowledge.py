"""ShareAcknowledge (79): acknowledge records of a share group (KIP-932)."""

from trilogue.wire.schema import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    String,
    Struct,
    Uuid,
    field,
)

KEY, VERSIONS, FLEXIBLE = 79, "0-2", "0+"


class ShareAcknowledgeRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            class AcknowledgementBatche(Struct):
                first_offset: Int64
                last_offset: Int64
                acknowledge_types: list[Int8]

            partition_index: Int32
            acknowledgement_batches: list[AcknowledgementBatche]

        topic_id: Uuid
        partitions: list[Partition]

    group_id: String | None = field(default=None)
    member_id: String | None
    share_session_epoch: Int32
    is_renew_ack: Bool = field("2+")
    topics: list[Topic]


class ShareAcknowledgeResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            class CurrentLeader(Struct):
                leader_id: Int32
                leader_epoch: Int32

            partition_index: Int32
            error_code: Int16 = field()
            error_message: String | None = field(default=None)
            current_leader: CurrentLeader

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
    acquisition_lock_timeout_ms: Int32 = field("2+")
    responses: list[Topic]
    node_endpoints: list[NodeEndpoint]
