"""DescribeLogDirs (35): the data directories of a broker, and what lies in them."""

from trilogue.wire.schema import Bool, Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 35, "0-5", "2+"


class DescribeLogDirsRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Topic(Struct):
        topic: String
        partitions: list[Int32]

    topics: list[Topic] | None


class DescribeLogDirsResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Result(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: Int32
                partition_size: Int64
                offset_lag: Int64
                is_future_key: Bool

            name: String
            partitions: list[Partition]

        error_code: Int16 = field()
        log_dir: String
        topics: list[Topic]
        total_bytes: Int64 = field("4+", default=-1)
        usable_bytes: Int64 = field("4+", default=-1)
        is_cordoned: Bool = field("5+")

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field("3+")
    results: list[Result]
