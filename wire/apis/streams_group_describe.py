"""StreamsGroupDescribe (89): state, members, tasks and topology of streams groups (KIP-1071)."""

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

KEY, VERSIONS, FLEXIBLE = 89, "0-1", "0+"


class StreamsGroupDescribeRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    group_ids: list[String]
    include_authorized_operations: Bool
    include_topology_description: Bool = field("1+")


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


class Assignment(Struct):
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]


class KeyValue(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[KeyValue]


class TopologyDescriptionNode(Struct):
    name: String = field("1+")
    node_type: Int8 = field("1+")
    source_topics: list[String] = field("1+")
    sink_topic: String | None = field("1+", default=None)
    stores: list[String] = field("1+")
    successors: list[String] = field("1+")


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: String = field("1+")
    nodes: list[TopologyDescriptionNode] = field("1+")


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode = field("1+")
    processor: TopologyDescriptionNode = field("1+")


class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology] = field("1+")
    global_stores: list[TopologyDescriptionGlobalStore] = field("1+")


class StreamsGroupDescribeResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Group(Struct):
        class Topology(Struct):
            class Subtopology(Struct):
                subtopology_id: String
                source_topics: list[String]
                repartition_sink_topics: list[String]
                state_changelog_topics: list[TopicInfo]
                repartition_source_topics: list[TopicInfo]

            epoch: Int32
            subtopologies: list[Subtopology] | None = field(default=None)

        class Member(Struct):
            member_id: String
            member_epoch: Int32
            instance_id: String | None = field(default=None)
            rack_id: String | None = field(default=None)
            client_id: String
            client_host: String
            topology_epoch: Int32
            process_id: String
            user_endpoint: Endpoint | None = field(default=None)
            client_tags: list[KeyValue]
            task_offsets: list[TaskOffset]
            task_end_offsets: list[TaskOffset]
            assignment: Assignment
            target_assignment: Assignment
            is_classic: Bool

        error_code: Int16 = field()
        error_message: String | None = field(default=None)
        group_id: String
        group_state: String
        group_epoch: Int32
        assignment_epoch: Int32
        topology: Topology | None = field(default=None)
        members: list[Member]
        authorized_operations: Int32 = field(default=-(2**31))
        topology_description: TopologyDescription | None = field("1+", default=None)
        topology_description_status: Int8 = field("1+")
        assignor_name: String | None = field("1+", default=None)

    throttle_time_ms: Int32 = field()
    groups: list[Group]
