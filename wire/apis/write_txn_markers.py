"""WriteTxnMarkers (27): the coordinator tells a partition's leader how a transaction ended."""

from trilogue.wire.schema import Bool, Int8, Int16, Int32, Int64, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 27, "0-2", "1+"


class WriteTxnMarkersRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Marker(Struct):
        class Topic(Struct):
            name: String
            partition_indexes: list[Int32]

        producer_id: Int64
        producer_epoch: Int16
        transaction_result: Bool
        topics: list[Topic]
        coordinator_epoch: Int32
        transaction_version: Int8 = field("2+")

    markers: list[Marker]


class WriteTxnMarkersResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Marker(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: Int32
                error_code: Int16 = field()

            name: String
            partitions: list[Partition]

        producer_id: Int64
        topics: list[Topic]

    markers: list[Marker]
