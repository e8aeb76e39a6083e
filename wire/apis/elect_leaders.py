"""ElectLeaders (43): put preferred, or any living, replicas in the lead."""

from trilogue.wire.schema import Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 43, "0-2", "2+"


class ElectLeadersRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class TopicPartitions(Struct):
        topic: String
        partitions: list[Int32]

    election_type: Int8 = field("1+")
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: Int32 = field(default=60000)


class ElectLeadersResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class ReplicaElectionResult(Struct):
        class PartitionResult(Struct):
            partition_id: Int32
            error_code: Int16 = field()
            error_message: String | None = field()

        topic: String
        partition_result: list[PartitionResult]

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field("1+")
    replica_election_results: list[ReplicaElectionResult]
