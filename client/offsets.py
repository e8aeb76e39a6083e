"""Where a topic's partitions begin, end, or were at a point in time."""

from collections.abc import Iterable

from trilogue.client.client import Client
from trilogue.client.dialogue import check
from trilogue.client.link import Link
from trilogue.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST, EARLIEST = -1, -2
CONSUMER = -1

Asked = ListOffsetsRequest.Topic.Partition


async def by_leader(client: Client, topic: str, partitions: Iterable[int]) -> dict[Link, list[int]]:
    """Who is to be asked about which."""
    found: dict[Link, list[int]] = {}
    for each in partitions:
        found.setdefault(await client.leader(topic, each), []).append(each)
    return found


async def offsets(
    client: Client, topic: str, partitions: Iterable[int], timestamp: int, *, committed_only: bool = False
) -> dict[int, int]:
    """The first offset at or after a time in milliseconds, or LATEST or EARLIEST; -1 where nothing is that young."""
    wanted = list(partitions)

    async def attempt() -> dict[int, int]:
        found = {}
        for link, indexes in (await by_leader(client, topic, wanted)).items():
            asked = [Asked(partition_index=each, timestamp=timestamp) for each in indexes]
            request = ListOffsetsRequest(
                replica_id=CONSUMER,
                isolation_level=int(committed_only),
                topics=[ListOffsetsRequest.Topic(name=topic, partitions=asked)],
            )
            answer = await link.call(request, ListOffsetsResponse, cap=7, seconds=client.timeout)
            for each in answer.topics[0].partitions:
                check(each.error_code)
                found[each.partition_index] = each.offset
        return found

    return await client.persist(attempt)
