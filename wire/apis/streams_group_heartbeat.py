"""StreamsGroupHeartbeat (88): join, stay in and leave a streams group (KIP-1071)."""

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
    UInt16,
    field,
)

KEY, VERSIONS, FLEXIBLE = 88, "0-1", "0+"


class KeyValue(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[KeyValue]


class Endpoint(Struct):
    host: String
    port: UInt16


class TaskOffset(Struct):
    subtopology_id: String
    partition: Int32
    offset: Int64


class TaskIds(Struct):
    subtopology_id: String
    partitions: list[Int32]


class StreamsGroupHeartbeatRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topology(Struct):
        class Subtopology(Struct):
            class CopartitionGroup(Struct):
                source_topics: list[Int16]
                source_topic_regex: list[Int16]
                repartition_source_topics: list[Int16]

            subtopology_id: String
            source_topics: list[String]
            source_topic_regex: list[String]
            state_changelog_topics: list[TopicInfo]
            repartition_sink_topics: list[String]
            repartition_source_topics: list[TopicInfo]
            copartition_groups: list[CopartitionGroup]

        epoch: Int32
        subtopologies: list[Subtopology]

    group_id: String
    member_id: String
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: String | None = field(default=None)
    rack_id: String | None = field(default=None)
    rebalance_timeout_ms: Int32 = field(default=-1)
    topology: Topology | None = field(default=None)
    active_tasks: list[TaskIds] | None = field(default=None)
    standby_tasks: list[TaskIds] | None = field(default=None)
    warmup_tasks: list[TaskIds] | None = field(default=None)
    process_id: String | None = field(default=None)
    user_endpoint: Endpoint | None = field(default=None)
    client_tags: list[KeyValue] | None = field(default=None)
    task_offsets: list[TaskOffset] | None = field(default=None)
    task_end_offsets: list[TaskOffset] | None = field(default=None)
    shutdown_application: Bool


class Status(Struct):
    status_code: Int8
    status_detail: String


class TopicPartition(Struct):
    topic: String
    partitions: list[Int32]


class StreamsGroupHeartbeatResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class EndpointPartitions(Struct):
        user_endpoint: Endpoint
        active_partitions: list[TopicPartition]
        standby_partitions: list[TopicPartition]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)
    member_id: String
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    acceptable_recovery_lag_legacy: Int32 = field("0")
    task_offset_interval_ms: Int32
    acceptable_recovery_lag: Int64 = field("1+", default=-1)
    status: list[Status] | None
    active_tasks: list[TaskIds] | None = field(default=None)
    standby_tasks: list[TaskIds] | None = field(default=None)
    warmup_tasks: list[TaskIds] | None = field(default=None)
    topology_description_required: Bool = field("1+")
    endpoint_information_epoch: Int32
    partitions_by_user_endpoint: list[EndpointPartitions] | None = field(default=None)
