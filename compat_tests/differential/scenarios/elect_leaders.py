"""ElectLeaders, where there is only one broker to elect."""

from typing import Any

from compat_tests.differential.asking import Asking, scenario
from trilogue.wire.apis.elect_leaders import ElectLeadersRequest

Wanted = ElectLeadersRequest.TopicPartitions


def sort_results(told: dict[str, Any]) -> dict[str, Any]:
    """Topics come in the order of a hash table."""
    return told | {"replica_election_results": sorted(told["replica_election_results"], key=lambda it: it["topic"])}


@scenario(ElectLeadersRequest)
def electing(ask: Asking) -> None:
    topic, other = ask.topic("elected", 2).name, ask.topic("other").name

    def elect(case: str, *wanted: tuple[str, list[int]], kind: int = 0) -> None:
        parts = [Wanted(topic=name, partitions=partitions) for name, partitions in wanted]
        asked = ElectLeadersRequest(election_type=kind, topic_partitions=parts, timeout_ms=5000)
        ask(case, asked, tidy=sort_results)

    def ours_only(told: dict[str, Any]) -> dict[str, Any]:
        results = [each for each in told["replica_election_results"] if each["topic"] in ("elected", "other")]
        return sort_results(told | {"replica_election_results": results})

    for kind in (0, 1, 2, -1):
        elect(f"type {kind}", (topic, [0]), kind=kind)
        elect(f"type {kind}, an unknown topic", (ask.name("unknown"), [0]), kind=kind)
    for kind in (0, 1):
        asked = ElectLeadersRequest(election_type=kind, topic_partitions=None, timeout_ms=5000)
        ask(f"all partitions, type {kind}", asked, tidy=ours_only)
    elect("two partitions", (topic, [0, 1]))
    elect("two topics", (topic, [0]), (other, [0]))
    elect("a right and a wrong partition", (topic, [0, 2]))
    elect("partition -1", (topic, [-1]))
    elect("the same partition twice", (topic, [0, 0]))
    elect("the same topic twice", (topic, [0]), (topic, [1]))
    elect("a name that cannot be", ("a/b", [0]))
    elect("no partitions", (topic, []))
    elect("no topics")
