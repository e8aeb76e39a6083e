"""DeleteTopics: by name, by id, and what cannot be deleted."""

from collections.abc import Sequence
from typing import Any

from compat_tests.differential.asking import NOBODYS_ID, Asking, scenario
from trilogue.wire.apis.delete_topics import DeleteTopicsRequest
from trilogue.wire.apis.metadata import MetadataRequest

Topic = DeleteTopicsRequest.Topic


def sort_topics(told: dict[str, Any]) -> dict[str, Any]:
    """Topics come in the order of a hash table."""
    return told | {"responses": sorted(told["responses"], key=repr)}


@scenario(DeleteTopicsRequest)
def by_name(ask: Asking) -> None:
    def delete(case: str, *names: str) -> None:
        topics = [Topic(name=each) for each in names]
        ask(case, DeleteTopicsRequest(topics=topics, topic_names=list(names), timeout_ms=5000), tidy=sort_topics)

    one, two, three, four = (ask.topic(name).name for name in ("one", "two", "three", "four"))
    delete("one topic", one)
    delete("again", one)
    delete("two topics", two, three)
    delete("none")
    delete("unknown", ask.name("unknown"))
    delete("the same twice", four, four)
    delete("a known and an unknown one", four, ask.name("unknown"))
    delete("an unknown one twice", ask.name("unknown"), ask.name("unknown"))
    for case, name in (("empty", ""), ("a slash", "a/b"), ("a dot", "."), ("250 letters", "x" * 250)):
        delete(f"a name that cannot be: {case}", name)
    delete("__cluster_metadata", "__cluster_metadata")
    ask.catch_up()
    wanted = MetadataRequest(topics=[MetadataRequest.Topic(name=one)], allow_auto_topic_creation=False)
    ask.note("it is gone", ask.quietly(wanted, 12).topics[0].error_code)


@scenario(DeleteTopicsRequest)
def by_id(ask: Asking) -> None:
    if ask.version < 6:
        return

    def delete(case: str, topics: Sequence[Topic]) -> None:
        ask(case, DeleteTopicsRequest(topics=list(topics), timeout_ms=5000), tidy=sort_topics)

    one, two, three = (ask.topic(name) for name in ("one", "two", "three"))
    delete("an id", [Topic(topic_id=one.id)])
    delete("again", [Topic(topic_id=one.id)])
    delete("an unknown id", [Topic(topic_id=NOBODYS_ID)])
    delete("neither id nor name", [Topic()])
    delete("id and name of one topic", [Topic(name=two.name, topic_id=two.id)])
    delete("id of one and name of another", [Topic(name=two.name, topic_id=three.id)])
    delete("an unknown id and a name", [Topic(name=two.name, topic_id=NOBODYS_ID)])
    delete("the same id twice", [Topic(topic_id=two.id), Topic(topic_id=two.id)])
    delete("a topic by id and by name", [Topic(topic_id=two.id), Topic(name=two.name)])
    delete("neither, twice", [Topic(), Topic()])
    delete("one by id, one by name", [Topic(topic_id=three.id), Topic(name=ask.name("unknown"))])
