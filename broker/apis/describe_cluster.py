"""DescribeCluster: the cluster's id, its brokers, and its controller.

v1+: which kind of node is asked about; controllers of a quorum we do not have.  v2+: brokers that are registered and
not there, if they are asked for.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.requests.endpoints import endpoint
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.security.operations import NOT_ASKED, OF_CLUSTER
from trilogue.wire.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from trilogue.wire.errors import ErrorCode

BROKERS, CONTROLLERS = 1, 2


@handles(DescribeClusterRequest)
def describe_cluster(broker: Broker, request: DescribeClusterRequest, peer: Peer) -> DescribeClusterResponse:
    image = broker.image
    if peer.version >= 1 and request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of the wrong type."
            if known
            else "Unknown endpoint type.",
            cluster_id="",
            brokers=[],
        )
    brokers = []
    gone = image.gone if request.include_fenced_brokers else {}
    for info in (*image.brokers.values(), *gone.values()):
        where = endpoint(broker, info, peer)
        if where is not None:
            host, port = where
            brokers.append(
                DescribeClusterResponse.Broker(
                    broker_id=info.id, host=host, port=port, rack=info.rack, is_fenced=info.id in gone
                )
            )
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller,
        brokers=brokers,
        cluster_authorized_operations=(OF_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED),
    )
