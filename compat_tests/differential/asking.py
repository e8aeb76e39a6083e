"""What a scenario is given: asks one broker in one version of one API, and writes down the answers by name."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from compat_tests.differential.connection import Closed, Connection
from compat_tests.differential.plain import plain
from trilogue.wire.apis.api_versions import ApiVersionsRequest
from trilogue.wire.apis.create_topics import CreateTopicsRequest
from trilogue.wire.apis.list_offsets import ListOffsetsRequest
from trilogue.wire.apis.metadata import MetadataRequest
from trilogue.wire.apis.produce import ProduceRequest
from trilogue.wire.records import Record, build
from trilogue.wire.schema import Request, Response

TIME_MS = 1_760_000_000_000
"""When the records of all scenarios were made."""

NOBODYS_ID = b"nobody has this!"
SETTLED_SECONDS = 10.0

SCENARIOS: list["Scenario"] = []


class Scenario(NamedTuple):
    request: type[Request]
    play: Callable[["Asking"], None]

    @property
    def api(self) -> str:
        return self.request.__name__.removesuffix("Request")


def scenario(request: type[Request]) -> Callable[[Callable[["Asking"], None]], Callable[["Asking"], None]]:
    """This function asks an API everything that is worth asking.  It is called once for every version."""

    def register(play: Callable[["Asking"], None]) -> Callable[["Asking"], None]:
        SCENARIOS.append(Scenario(request, play))
        return play

    return register


class Topic(NamedTuple):
    name: str
    id: bytes


class Asking:
    def __init__(self, address: tuple[str, int], version: int, name: str, labels: dict[bytes, str]) -> None:
        self.address, self.version, self._name, self._labels = address, version, name, labels
        self._labels[NOBODYS_ID] = "nobody's id"
        self._connection = Connection(address)
        self._helper = Connection(address)
        self.answers: dict[str, Any] = {}
        self._barriers = 0

    def close(self) -> None:
        self._connection.close()
        self._helper.close()

    # -- what is written down --------------------------------------------------------------------------

    def __call__(
        self,
        case: str,
        request: Request,
        *,
        client_id: str | None = "differential",
        trailing: bytes = b"",
        tidy: Callable[[dict[str, Any]], Any] | None = None,
    ) -> Any:
        """Ask, and write down the answer, or that there was none.  `tidy` takes out what other scenarios left."""
        return self._note(
            case,
            lambda: self._connection.ask(request, self.version, client_id=client_id, trailing=trailing),
            tidy,
        )

    def raw(self, case: str, request: type[Request], body: bytes) -> Any:
        """Send bytes that may not be a request at all."""

        def talk() -> Response:
            self._connection.send_raw(request.api_key, self.version, body)
            return self._connection.hear(request(), self.version)

        return self._note(case, talk, None)

    def unanswered(self, case: str, request: Request) -> None:
        """Send what has no answer; write down whether the connection stays open."""
        self._connection.send(request, self.version)
        try:
            self._connection.ask(ApiVersionsRequest(), 0)
        except Closed:
            self._write(case, "closed")
            self._reconnect()
        else:
            self._write(case, "silence")

    def note(self, case: str, told: Any) -> None:
        """Write down something that the scenario has found out by itself."""
        self._write(case, told)

    def _note(self, case: str, talk: Callable[[], Response], tidy: Callable[[dict[str, Any]], Any] | None) -> Any:
        try:
            answer = talk()
        except Closed:
            self._write(case, "closed")
            self._reconnect()
            return None
        except TimeoutError as error:
            error.add_note(f"no answer to {case!r}")
            raise
        told = plain(answer, self.version, self._labels, self.name(""))
        self._write(case, tidy(told) if tidy else told)
        return answer

    def _write(self, case: str, told: Any) -> None:
        assert case not in self.answers, f"{case!r} was asked already"
        self.answers[case] = told

    def _reconnect(self) -> None:
        self._connection.close()
        self._connection = Connection(self.address)

    # -- what is set up --------------------------------------------------------------------------------

    def quietly(self, request: Request, version: int) -> Any:
        """Ask in some version, without writing it down."""
        return self._helper.ask(request, version)

    def until(self, settled: Callable[[Any], bool], request: Request, version: int) -> Any:
        """Ask quietly, again and again, until the answer is as it should be; that answer."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while not settled(answer := self.quietly(request, version)):
            assert time.monotonic() < deadline, f"{self._name}: {request} is still answered with {answer}"
            time.sleep(0.01)
        return answer

    def name(self, name: str) -> str:
        """A name that no other scenario and no other version uses."""
        return f"{self._name}-v{self.version}-{name}"

    def label(self, raw: bytes, text: str) -> None:
        """Answers call this id by that name."""
        self._labels[bytes(raw)] = text

    def topic(self, name: str, partitions: int = 1, **configs: str) -> Topic:
        """A new topic that can be written to.  Settings with underscores for dots."""
        full = self.name(name)
        asked = CreateTopicsRequest.Topic(
            name=full,
            num_partitions=partitions,
            replication_factor=1,
            assignments=[],
            configs=[
                CreateTopicsRequest.Topic.Config(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        answer = self.quietly(CreateTopicsRequest(topics=[asked], timeout_ms=10_000, validate_only=False), 7).topics[0]
        assert answer.error_code == 0, f"{full}: {answer}"
        return self.settled(full, partitions)

    def settled(self, name: str, partitions: int) -> Topic:
        """Wait until a topic is there with all its leaders."""
        asked = [
            ListOffsetsRequest.Topic(
                name=name,
                partitions=[
                    ListOffsetsRequest.Topic.Partition(partition_index=i, current_leader_epoch=-1, timestamp=-1)
                    for i in range(partitions)
                ],
            )
        ]
        self.until(
            lambda answer: all(each.error_code == 0 for each in answer.topics[0].partitions),
            ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=asked),
            7,
        )
        wanted = [MetadataRequest.Topic(topic_id=bytes(16), name=name)]
        answer = self.quietly(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), 12).topics[0]
        self.label(answer.topic_id, f"id of {name}")
        return Topic(name, bytes(answer.topic_id))

    def catch_up(self) -> None:
        """Wait until the broker shows what it has agreed to: a later topic is there only when all before it is."""
        self._barriers += 1
        self.topic(f"barrier-{self._barriers}")

    def write(self, topic: Topic, raw: bytes, partition: int = 0) -> int:
        """Append a batch; its offset."""
        data = ProduceRequest.Topic.Partition(index=partition, records=raw)
        request = ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=[ProduceRequest.Topic(name=topic.name, partition_data=[data])]
        )
        answer = self.quietly(request, 9).responses[0].partition_responses[0]
        assert answer.error_code == 0, f"{topic.name}: {answer}"
        return int(answer.base_offset)


def batch(*values: str | bytes | None, keys: Sequence[bytes | None] = (), at_ms: int = TIME_MS, **more: Any) -> bytes:
    """A batch of records a second apart."""
    made = [
        Record(
            number,
            at_ms + 1000 * number,
            keys[number] if keys else b"key",
            each.encode() if isinstance(each, str) else each,
        )
        for number, each in enumerate(values)
    ]
    return bytes(build(made, **more))
