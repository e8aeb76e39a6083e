"""StreamsGroupTopologyDescriptionUpdate (93): a streams group's topology, described for people (KIP-1331)."""

from trilogue.wire.schema import Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 93, "0", "0+"


class TopologyDescriptionNode(Struct):
    name: String
    node_type: Int8
    source_topics: list[String]
    sink_topic: String | None = field(default=None)
    stores: list[String]
    successors: list[String]


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: String
    nodes: list[TopologyDescriptionNode]


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode
    processor: TopologyDescriptionNode


class TopologyDescription(Struct):
    subtopologies: list[TopologyDescriptionSubtopology]
    global_stores: list[TopologyDescriptionGlobalStore]


class StreamsGroupTopologyDescriptionUpdateRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    group_id: String
    member_id: String
    topology_epoch: Int32
    topology_description: TopologyDescription


class StreamsGroupTopologyDescriptionUpdateResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)
