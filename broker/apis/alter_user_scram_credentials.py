"""AlterUserScramCredentials: let a user log in by SCRAM, or no longer.

The client has salted the password; what we keep is enough to check it and not to know it.  Users are answered for by
themselves; those that are fine are stored together.  Who is logged in stays so.
"""

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.image import Image
from trilogue.broker.cluster.users import Change, Deletion, Key, Upsertion, decide
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.broker.requests.seams import controller
from trilogue.broker.security.operations import Operation
from trilogue.wire.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from trilogue.wire.errors import BrokerError

Result = AlterUserScramCredentialsResponse.Result


@handles(AlterUserScramCredentialsRequest)
async def alter_user_scram_credentials(
    broker: Broker, request: AlterUserScramCredentialsRequest, peer: Peer
) -> AlterUserScramCredentialsResponse:
    asked: list[Change] = [Deletion(each.name, each.mechanism) for each in request.deletions]
    asked += [
        Upsertion(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
        for each in request.upsertions
    ]
    refused: dict[str, BrokerError] = {}

    def changes(image: Image) -> dict[Key, dict[str, str]]:
        nonlocal refused
        changed, refused = decide(image, asked)
        return changed

    try:
        await controller(broker, peer, Operation.ALTER).alter_configs(changes)
    except BrokerError as error:
        refused = {each.name: error for each in asked}
    return AlterUserScramCredentialsResponse(
        results=[result(name, refused.get(name)) for name in dict.fromkeys(each.name for each in asked)]
    )


def result(name: str, error: BrokerError | None) -> Result:
    if error is None:
        return Result(user=name, error_message=None)
    return Result(user=name, error_code=error.code, error_message=error.message)
