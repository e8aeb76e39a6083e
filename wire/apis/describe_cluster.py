"""DescribeCluster (60): the cluster's id, its brokers or controllers, and its controller."""

from trilogue.wire.schema import Bool, Int8, Int16, Int32, Request, Response, String, Struct, field

KEY, VERSIONS, FLEXIBLE = 60, "0-2", "0+"


class DescribeClusterRequest(Request, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    include_cluster_authorized_operations: Bool
    endpoint_type: Int8 = field("1+", default=1)
    include_fenced_brokers: Bool = field("2+")


class DescribeClusterResponse(Response, key=KEY, versions=VERSIONS, flexible=FLEXIBLE):
    class Broker(Struct):
        broker_id: Int32
        host: String
        port: Int32
        rack: String | None = field(default=None)
        is_fenced: Bool = field("2+")

    throttle_time_ms: Int32 = field()
    error_code: Int16 = field()
    error_message: String | None = field(default=None)
    endpoint_type: Int8 = field("1+", default=1)
    cluster_id: String
    controller_id: Int32 = field(default=-1)
    brokers: list[Broker]
    cluster_authorized_operations: Int32 = field(default=-(2**31))
