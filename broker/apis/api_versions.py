"""ApiVersions: what this broker speaks.

Answered before anything else, authentication included.  A version that we lack is answered by `connection.py`, in
version 0 (KIP-511).  v3+: the client says what it is; names that do not look like one are refused.
Features: those that Kafka 4.3.1 has finalized and we have built.  v3 keeps silent about what may also be done without:
older Java clients throw at a minimum of 0 (KAFKA-17492).
"""

import re

from trilogue.broker.broker import Broker
from trilogue.broker.features import FEATURES
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import APIS, handles
from trilogue.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from trilogue.wire.errors import ErrorCode

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handles(ApiVersionsRequest, "0-4")
def api_versions(broker: Broker, request: ApiVersionsRequest, peer: Peer) -> ApiVersionsResponse:
    if peer.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not SOFTWARE.fullmatch(name) or not SOFTWARE.fullmatch(version):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
        peer.software_name, peer.software_version = name, version
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(
                api_key=key, min_version=api.advertised.first, max_version=api.advertised.last
            )
            for key, api in sorted(APIS.items())
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeature(name=each.name, min_version=0, max_version=each.supported)
            for each in FEATURES
            if peer.version >= 4
        ],
        finalized_features_epoch=0,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeature(
                name=each.name, max_version_level=each.finalized, min_version_level=each.finalized
            )
            for each in FEATURES
        ],
    )
