"""DescribeUserScramCredentials: by which SCRAM mechanisms users can log in; salts and keys are nobody's business.

Nobody named is everybody.  Who is named twice, or has none, is refused by himself.
"""

from collections import Counter

from trilogue.broker.broker import Broker
from trilogue.broker.cluster.users import everybody, iterations_of
from trilogue.broker.requests.peer import Peer
from trilogue.broker.requests.registry import handles
from trilogue.wire.apis.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from trilogue.wire.errors import BrokerError, ErrorCode

Result = DescribeUserScramCredentialsResponse.Result

TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: {}"
NOT_THERE = "Attempt to describe a user credential that does not exist: {}"


@handles(DescribeUserScramCredentialsRequest)
def describe_user_scram_credentials(
    broker: Broker, request: DescribeUserScramCredentialsRequest, peer: Peer
) -> DescribeUserScramCredentialsResponse:
    times = Counter(each.name for each in request.users or ()) or Counter(everybody(broker.image))
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[describe(broker, name, count) for name, count in times.items()]
    )


def describe(broker: Broker, name: str, times: int) -> Result:
    try:
        if times > 1:
            raise BrokerError(ErrorCode.DUPLICATE_RESOURCE, TWICE.format(name))
        found = iterations_of(broker.image, name)
        if not found:
            raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, NOT_THERE.format(name))
    except BrokerError as error:
        return Result(user=name, error_code=error.code, error_message=error.message, credential_infos=[])
    infos = [Result.CredentialInfo(mechanism=kind, iterations=iterations) for kind, iterations in found.items()]
    return Result(user=name, error_message=None, credential_infos=infos)
