"""UpdateFeatures: raise or lower what the whole cluster agrees on.

Levels are fixed here: what `features.py` says is in use.  Asking for just that is granted, everything else is refused
with the code that Kafka has for levels that cannot be (KNOWN_GAPS.md).  v0-1 tell features apart, but as in Kafka 4 a
refusal is one of the whole.  v1+: `validate_only`, which makes no difference here.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.features import FEATURES
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from trilogue.wire.errors import ErrorCode

Result = UpdateFeaturesResponse.Result


@handles(UpdateFeaturesRequest)
def update_features(broker: Broker, request: UpdateFeaturesRequest, peer: Peer) -> UpdateFeaturesResponse:
    in_use = {each.name: each.finalized for each in FEATURES}
    for each in request.feature_updates:
        if in_use.get(each.feature) != each.max_version_level:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message=f"This cluster cannot have {each.feature!r} at level {each.max_version_level}.",
                results=[],
            )
    granted = [Result(feature=each.feature, error_message="It is at that level.") for each in request.feature_updates]
    return UpdateFeaturesResponse(error_message=None, results=granted)
