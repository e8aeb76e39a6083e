"""SCRAM credentials of users: which there are, and what becomes of them by what an administrator asks for.

One change for a user in one request; whoever is named more often is refused as a whole, as Kafka does.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trilogue.broker.cluster.image import Image
from trilogue.broker.security.credentials import Credential, entity, entity_name
from trilogue.wire.errors import BrokerError, ErrorCode
from trilogue.wire.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism

logger = logging.getLogger(__name__)

KIND = "users"
Key = tuple[str, str]


class Deletion(NamedTuple):
    name: str
    mechanism: int


class Upsertion(NamedTuple):
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


Change = Deletion | Upsertion


def credential_of(image: Image, name: str, kind: ScramMechanism) -> Credential | None:
    """What the user has; nothing, too, if it cannot be read."""
    text = image.config(KIND, entity(name)).get(kind.sasl_name)
    try:
        return None if text is None else Credential.parse(text)
    except ValueError as problem:
        logger.error("%s of %r in the store: %s", kind.sasl_name, name, problem)
        return None


def iterations_of(image: Image, name: str) -> dict[ScramMechanism, int]:
    """By the mechanisms that the user has."""
    found = {kind: credential_of(image, name, kind) for kind in ScramMechanism}
    return {kind: each.iterations for kind, each in found.items() if each is not None}


def everybody(image: Image) -> list[str]:
    """Who has any."""
    names = sorted(entity_name(part) for kind, part in image.configs if kind == KIND)
    return [name for name in names if iterations_of(image, name)]


def decide(image: Image, asked: Sequence[Change]) -> tuple[dict[Key, dict[str, str]], dict[str, BrokerError]]:
    """The settings of all users that change, and who is refused."""
    refused = refusals(image, asked)
    changed: dict[Key, dict[str, str]] = {}
    for each in asked:
        if each.name not in refused:
            key = KIND, entity(each.name)
            changed[key] = after(image.config(*key), each)
    return changed, refused


def refusals(image: Image, asked: Sequence[Change]) -> dict[str, BrokerError]:
    times = Counter(each.name for each in asked)
    found: dict[str, BrokerError] = {}
    for each in asked:
        try:
            check(image, each)
        except BrokerError as error:
            found.setdefault(each.name, error)
    for name, count in times.items():
        if count > 1 and name not in found:
            found[name] = BrokerError(
                ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
            )
    return found


def check(image: Image, asked: Change) -> None:
    if not asked.name:
        raise BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if asked.mechanism not in list(ScramMechanism):
        raise BrokerError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(asked, Deletion):
        if ScramMechanism(asked.mechanism) not in iterations_of(image, asked.name):
            raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    elif asked.iterations < ITERATIONS_MIN:
        raise BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif asked.iterations > ITERATIONS_MAX:
        raise BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    elif not asked.salted_password:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka, which stumbles over it


def after(config: Mapping[str, str], change: Change) -> dict[str, str]:
    kind = ScramMechanism(change.mechanism)
    others = {name: value for name, value in config.items() if name != kind.sasl_name}
    if isinstance(change, Deletion):
        return others
    credential = Credential.of_salted(kind, change.salted_password, change.salt, change.iterations)
    return {**others, kind.sasl_name: credential.text}
