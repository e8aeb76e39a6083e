"""AlterReplicaLogDirs (34): move replicas between the data directories of a broker."""

from trilogue.wire.schema import Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 34, "0-2", "2+"


class AlterReplicaLogDirsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Dir(Struct):
        class Topic(Struct):
            name: String
            partitions: list[Int32]

        path: String
        topics: list[Topic]

    dirs: list[Dir]


class AlterReplicaLogDirsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: Int32
            error_code: Int16 = field()

        topic_name: String
        partitions: list[Partition]

    throttle_time_ms: Int32 = field()
    results: list[Topic]
