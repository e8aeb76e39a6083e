"""Metadata: all, none, by name, by id, names that cannot be, and topics that are made by being asked for."""

from typing import Any

from compat_tests.differential.asking import NOBODYS_ID, Asking, scenario
from trilogue.wire.apis.metadata import MetadataRequest

Topic = MetadataRequest.Topic


def named(*names: str | None, **more: Any) -> MetadataRequest:
    return MetadataRequest(topics=[Topic(name=each) for each in names], **({"allow_auto_topic_creation": False} | more))


@scenario(MetadataRequest)
def asking(ask: Asking) -> None:
    one, three = ask.topic("one"), ask.topic("three", 3)
    unknown = ask.name("unknown")

    def ours_only(told: dict[str, Any]) -> dict[str, Any]:
        found = sorted((each for each in told["topics"] if each["name"] in ("one", "three")), key=repr)
        return told | {"topics": found}

    if ask.version >= 1:
        ask("null topics", MetadataRequest(topics=None, allow_auto_topic_creation=False), tidy=ours_only)
        ask("no topics", named())
    else:
        ask("no topics", named(), tidy=ours_only)
    ask("one topic", named(one.name))
    ask("two topics", named(three.name, one.name))
    ask("the same topic twice", named(one.name, one.name))
    if ask.version >= 4:
        ask("an unknown topic", named(unknown))
        ask("an unknown topic and a known one", named(unknown, one.name))
    ask("authorized operations", named(one.name, include_topic_authorized_operations=True))
    ask("the cluster's operations", named(one.name, include_cluster_authorized_operations=True))
    for case, name in (
        ("empty name", ""),
        ("a dot", "."),
        ("two dots", ".."),
        ("a slash", "a/b"),
        ("a space", "a b"),
        ("a name of 250 letters", "x" * 250),
        ("a letter of another alphabet", "ä"),
    ):
        ask(f"{case}", named(name))
        ask(f"{case}, to be made", named(name, allow_auto_topic_creation=True))
    ask("bytes behind the request", named(one.name), trailing=b"more")


@scenario(MetadataRequest)
def making(ask: Asking) -> None:
    """Topics are made by being asked for: of every version before 4, and of later ones if they say so."""
    name = ask.name("new")
    ask("a new topic", named(name, allow_auto_topic_creation=True))
    ask.settled(name, 2)
    ask("the topic made", named(name, allow_auto_topic_creation=True))
    both = [ask.name("collide.d"), ask.name("collide_d")]
    ask("a name with a dot", named(both[0], allow_auto_topic_creation=True))
    ask.settled(both[0], 2)
    ask("a name that collides with it", named(both[1], allow_auto_topic_creation=True))
    ask("two new topics", named(ask.name("a"), ask.name("b"), allow_auto_topic_creation=True))


@scenario(MetadataRequest)
def by_id(ask: Asking) -> None:
    if ask.version < 10:
        return
    topic = ask.topic("known")
    for case, topics in (
        ("a known id", [Topic(topic_id=topic.id, name=None)]),
        ("an unknown id", [Topic(topic_id=NOBODYS_ID, name=None)]),
        ("a known and an unknown id", [Topic(topic_id=topic.id, name=None), Topic(topic_id=NOBODYS_ID, name=None)]),
        ("id and name", [Topic(topic_id=topic.id, name=topic.name)]),
        ("neither id nor name", [Topic(name=None)]),
        ("the id of one and the name of no topic", [Topic(topic_id=topic.id, name=ask.name("unknown"))]),
        ("one by id and one by name", [Topic(topic_id=topic.id, name=None), Topic(name=topic.name)]),
        ("one by id and an unknown one by name", [Topic(topic_id=topic.id, name=None), Topic(name=ask.name("x"))]),
        ("the same id twice", [Topic(topic_id=topic.id, name=None), Topic(topic_id=topic.id, name=None)]),
        ("an empty name with an id", [Topic(topic_id=topic.id, name="")]),
    ):
        ask(case, MetadataRequest(topics=topics, allow_auto_topic_creation=False))
