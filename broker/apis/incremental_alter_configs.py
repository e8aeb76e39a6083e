"""IncrementalAlterConfigs: set, unset, and add to or take from lists of, single settings.

As AlterConfigs in all else, and loggers too: their levels last until the broker stops.  To unset what is not set is
fine; to add to a list that is not set begins with what the broker's file says.  v1: flexible.
An operation that there is not is INVALID_REQUEST; for all but brokers, Kafka says UNKNOWN_SERVER_ERROR.
"""

from trilogue.broker.apis.alter_configs import alter
from trilogue.broker.broker import Broker
from trilogue.broker.config import loggers
from trilogue.broker.config.alter import Asked, Change, ResourceType, number, objections
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from trilogue.wire.errors import BrokerError, ErrorCode

Answer = IncrementalAlterConfigsResponse.Resource


@handles(IncrementalAlterConfigsRequest)
async def incremental_alter_configs(
    broker: Broker, request: IncrementalAlterConfigsRequest, peer: Peer
) -> IncrementalAlterConfigsResponse:
    asked = [
        Asked(
            each.resource_type,
            each.resource_name,
            [Change(config.name, config.config_operation, config.value) for config in each.configs],
        )
        for each in request.resources
    ]
    errors = await alter_all(broker, peer, asked, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(
        responses=[
            Answer(
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.message if error else None,
                resource_type=each.resource_type,
                resource_name=each.name,
            )
            for each, error in zip(asked, errors, strict=True)
        ]
    )


async def alter_all(broker: Broker, peer: Peer, asked: list[Asked], *, validate_only: bool) -> list[BrokerError | None]:
    """Loggers are altered here and now; the rest is stored."""
    errors = list(objections(asked))
    stored = [at for at, each in enumerate(asked) if each.resource_type != ResourceType.BROKER_LOGGER]
    for at, each in enumerate(asked):
        if at not in stored and errors[at] is None:
            errors[at] = alter_loggers(broker, each, validate_only)
    outcome = await alter(
        broker, peer, [asked[at] for at in stored], [errors[at] for at in stored], validate_only=validate_only
    )
    for at, error in zip(stored, outcome, strict=True):
        errors[at] = error
    return errors


def alter_loggers(broker: Broker, asked: Asked, validate_only: bool) -> BrokerError | None:
    try:
        if number(asked.name, "Node") != broker.node_id:
            message = f"Unexpected node id. Expected {broker.node_id}, but received {asked.name}"
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        loggers.alter_levels(asked.changes, validate_only)
    except BrokerError as error:
        return error
    return None
