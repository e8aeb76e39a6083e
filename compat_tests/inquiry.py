"""What stock clients do not ask brokers for: who coordinates what, which transactions are open, and what one of several
brokers believes a group to have committed."""

from typing import TypeVar

from compat_tests.trial import ASK_SECONDS, Trial
from trilogue.client.blocking import Blocking, run
from trilogue.client.dialogue import Ticket
from trilogue.client.errors import ClientError
from trilogue.client.link import connect
from trilogue.client.world import Address
from trilogue.wire.apis.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from trilogue.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from trilogue.wire.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from trilogue.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from trilogue.wire.errors import ErrorCode
from trilogue.wire.schema import Request, Response

GROUP, TRANSACTION = 0, 1
OPEN = ["Ongoing", "PrepareCommit", "PrepareAbort"]
NOBODY = -1
OF_ONE_GROUP = 7
"""The last version of OffsetFetch that is."""

R = TypeVar("R", bound=Response)


def ask(bootstrap: str, request: Request, response: type[R], cap: int | None = None) -> R:
    link = run(connect(Blocking(), Address.parse(bootstrap), seconds=ASK_SECONDS))
    try:
        return run(link.call(request, response, cap=cap, seconds=ASK_SECONDS))
    finally:
        link.close()


def coordinator(it: Trial, kind: int, key: str) -> int:
    """Whoever looks after this group or transactional id; nobody if that is not known now."""
    for bootstrap in it.awake.split(","):
        try:
            request = FindCoordinatorRequest(key=key, key_type=kind)
            found = ask(bootstrap, request, FindCoordinatorResponse, cap=2)
        except ClientError:
            continue
        return int(found.node_id) if found.error_code == ErrorCode.NONE else NOBODY
    return NOBODY


def open_transactions(it: Trial) -> list[str]:
    """All that are not at rest, as coordinators and as partitions know them; and who could not be asked."""
    found = []
    topics = it.metadata().topics.values()
    for number, broker in it.cluster.brokers.items():
        led = [
            DescribeProducersRequest.Topic(
                name=topic.topic,
                partition_indexes=[each.id for each in topic.partitions.values() if each.leader == number],
            )
            for topic in topics
        ]
        try:
            listed = ask(
                broker.bootstrap,
                ListTransactionsRequest(state_filters=OPEN, producer_id_filters=[]),
                ListTransactionsResponse,
            )
            described = ask(broker.bootstrap, DescribeProducersRequest(topics=led), DescribeProducersResponse)
        except ClientError as error:
            found.append(f"{number} does not say: {error}")
            continue
        if listed.error_code != ErrorCode.NONE:
            found.append(f"{number} says {ErrorCode(listed.error_code).name}")  # type: ignore[call-arg]
        found += (f"{each.transactional_id} is in {each.transaction_state}" for each in listed.transaction_states)
        found += (
            f"producer {each.producer_id} in {topic.name}-{part.partition_index} since {each.current_txn_start_offset}"
            for topic in described.topics
            for part in topic.partitions
            for each in part.active_producers
            if each.current_txn_start_offset >= 0
        )
        found += (
            f"{topic.name}-{part.partition_index}: {ErrorCode(part.error_code).name}"  # type: ignore[call-arg]
            for topic in described.topics
            for part in topic.partitions
            if part.error_code
        )
    return found


class Question:
    """What a group has committed, put to a broker that may take its time to answer."""

    def __init__(self, broker: str, group: str) -> None:
        self._group = group
        self._link = run(connect(Blocking(), Address.parse(broker), seconds=ASK_SECONDS))
        self._ticket: Ticket[OffsetFetchResponse] | None = None

    def ask(self) -> None:
        request = OffsetFetchRequest(group_id=self._group, topics=None, require_stable=False)
        self._ticket = run(self._link.ask(request, OffsetFetchResponse, cap=OF_ONE_GROUP))

    def answer(self) -> dict[int, int] | None:
        """By partition, of the one topic that there is; None if that broker does not say."""
        assert self._ticket is not None
        try:
            found = run(self._link.answer(self._ticket, seconds=ASK_SECONDS))
        finally:
            self._link.close()
        if found.error_code != ErrorCode.NONE:
            return None
        return {each.partition_index: each.committed_offset for topic in found.topics for each in topic.partitions}


def committed(broker: str, group: str) -> dict[int, int] | None:
    """Likewise, at once."""
    try:
        question = Question(broker, group)
        question.ask()
        return question.answer()
    except ClientError:
        return None
