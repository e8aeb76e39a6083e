"""ListConfigResources: what DescribeConfigs can be asked about.

Brokers, their loggers and topics are listed whether they set anything or not; groups and metrics subscriptions only if
they do.  v0 knew metrics subscriptions only.  v1+: `resource_types` picks some, and a type that there is not fails the
request with UNSUPPORTED_VERSION.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.config.alter import ResourceType
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from trilogue.wire.errors import ErrorCode

Resource = ListConfigResourcesResponse.ConfigResource


@handles(ListConfigResourcesRequest)
def list_config_resources(
    broker: Broker, request: ListConfigResourcesRequest, peer: Peer
) -> ListConfigResourcesResponse:
    types = (request.resource_types or list(ResourceType)) if peer.version >= 1 else [ResourceType.CLIENT_METRICS]
    names = names_by_type(broker)
    if not all(each in names for each in types):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    return ListConfigResourcesResponse(
        error_code=ErrorCode.NONE,
        config_resources=[
            Resource(resource_name=name, resource_type=each) for each in dict.fromkeys(types) for name in names[each]
        ],
    )


def names_by_type(broker: Broker) -> dict[int, list[str]]:
    image = broker.image
    brokers = [str(node_id) for node_id in sorted(image.brokers)]
    return {
        ResourceType.TOPIC: sorted(image.topics),
        ResourceType.BROKER: brokers,
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.CLIENT_METRICS: sorted(name for kind, name in image.configs if kind == "client-metrics"),
        ResourceType.GROUP: sorted(name for kind, name in image.configs if kind == "groups"),
    }
