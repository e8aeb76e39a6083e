"""DescribeCluster."""

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.describe_cluster import DescribeClusterRequest


@scenario(DescribeClusterRequest)
def describing(ask: Asking) -> None:
    ask("plain", DescribeClusterRequest(include_cluster_authorized_operations=False))
    ask("operations", DescribeClusterRequest(include_cluster_authorized_operations=True))
    for endpoint in (0, 1, 2, 3, -1, 127):
        asked = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint)
        ask(f"endpoint type {endpoint}", asked)
    fenced = {"include_cluster_authorized_operations": False, "include_fenced_brokers": True}
    ask("fenced brokers, too", DescribeClusterRequest(**fenced))
    ask("fenced brokers of controllers", DescribeClusterRequest(endpoint_type=2, **fenced))
    ask("no client id", DescribeClusterRequest(include_cluster_authorized_operations=False), client_id=None)
    ask("bytes behind", DescribeClusterRequest(include_cluster_authorized_operations=False), trailing=b"more")
