"""AlterConfigs: replace the settings of topics, brokers, groups and metrics subscriptions.

Whatever is not named goes back to its default; clients that want to change one setting use IncrementalAlterConfigs.
Each resource succeeds or fails as a whole and by itself.  Answered when this broker obeys the new settings, which
Kafka does not wait for.  A broker's settings are altered by that broker, under its id; those of all brokers by any,
under an empty name.  Loggers cannot be altered so.  v2: flexible.
A resource named twice is refused each time; Kafka 4.3.1 never answers such a request.
"""

from collections.abc import Sequence

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.image import Image
from trilogue.broker.config.alter import Asked, Change, OpType, ResourceKey, Scene, decide, objections, unchanged
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import controller
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from trilogue.wire.errors import BrokerError, ErrorCode

Answer = AlterConfigsResponse.Resource


@handles(AlterConfigsRequest)
async def alter_configs(broker: Broker, request: AlterConfigsRequest, peer: Peer) -> AlterConfigsResponse:
    asked = [
        Asked(
            each.resource_type,
            each.resource_name,
            [Change(config.name, OpType.SET, config.value) for config in each.configs],
            replace=True,
        )
        for each in request.resources
    ]
    errors = await alter(broker, peer, asked, list(objections(asked)), validate_only=request.validate_only)
    return AlterConfigsResponse(
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


async def alter(
    broker: Broker, peer: Peer, asked: Sequence[Asked], refused: Sequence[BrokerError | None], *, validate_only: bool
) -> list[BrokerError | None]:
    """Alter those that are not refused yet; answer who is refused in the end."""
    errors = list(refused)
    waiting: list[int] = []

    def changes(image: Image) -> dict[ResourceKey, dict[str, str]]:
        """What is to be stored; decided on the settings that this image shows."""
        scene = Scene(broker.node_id, broker.static, broker.config, image)
        errors[:], waiting[:] = refused, []
        found: dict[ResourceKey, dict[str, str]] = {}
        for at, each in enumerate(asked):
            if errors[at] is None:
                try:
                    key, after = decide(scene, each)
                except BrokerError as error:
                    errors[at] = error
                    continue
                if not unchanged(image, key, after):
                    found[key] = after
                    waiting.append(at)
        return found

    if validate_only:
        changes(broker.image)
        return errors
    try:
        await controller(broker, peer, Operation.ALTER_CONFIGS).alter_configs(changes)
    except BrokerError as error:
        for at in waiting:
            errors[at] = error
    return errors
