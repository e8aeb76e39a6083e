"""Who looks after a group or a transactional id."""

from trilogue.client.client import Client
from trilogue.client.dialogue import check
from trilogue.client.link import Link
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1


async def coordinator(client: Client, kind: int, key: str) -> Link:
    """Raises COORDINATOR_NOT_AVAILABLE while there is none, which `Client.persist` waits for."""
    request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
    answer = await client.call(request, FindCoordinatorResponse)
    found = answer.coordinators[0] if answer.coordinators else answer
    check(found.error_code, found.error_message)
    return await client.node(found.node_id)


async def brokers(client: Client) -> dict[int, Link]:
    """All of them, by number."""
    known = (await client.metadata([])).brokers
    return {each.node_id: await client.node(each.node_id) for each in sorted(known, key=lambda each: each.node_id)}
