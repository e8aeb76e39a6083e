"""Fetch: what is read, within which limits, and what sessions remember."""

from typing import Any

from compat_tests.differential.asking import NOBODYS_ID, Asking, Topic, batch, scenario
from trilogue.wire.apis.delete_records import DeleteRecordsRequest
from trilogue.wire.apis.fetch import FetchRequest
from trilogue.wire.compression import Codec

Partition = FetchRequest.Topic.Partition
Forgotten = FetchRequest.ForgottenTopic
PLENTY = 1 << 20


def part(offset: int, partition: int = 0, *, most: int = PLENTY, epoch: int = -1, last_epoch: int = -1) -> Partition:
    return Partition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=most,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )


def of(topic: Topic, *parts: Partition) -> FetchRequest.Topic:
    return FetchRequest.Topic(topic=topic.name, topic_id=topic.id, partitions=list(parts))


def request(*topics: FetchRequest.Topic, **more: Any) -> FetchRequest:
    fields: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": PLENTY, "isolation_level": 0}
    return FetchRequest(topics=list(topics), **(fields | more))


@scenario(FetchRequest)
def reading(ask: Asking) -> None:
    topic, empty = ask.topic("read", 2), ask.topic("empty")
    ask.write(topic, batch("a", "b", "c"))
    ask.write(topic, batch("d", "e"))
    ask.write(topic, batch("f", codec=Codec.GZIP))
    ask.write(topic, batch("other"), 1)
    for offset in (0, 1, 3, 4, 5, 6, 7, 2**62, -1, -2):
        ask(f"offset {offset}", request(of(topic, part(offset))))
    ask("an empty topic", request(of(empty, part(0))))
    ask("past the end of an empty topic", request(of(empty, part(1))))
    ask("two partitions", request(of(topic, part(0), part(0, 1))))
    ask("two partitions, the other way round", request(of(topic, part(0, 1), part(0))))
    ask("two topics", request(of(empty, part(0)), of(topic, part(3))))
    ask("committed only", request(of(topic, part(0)), isolation_level=1))
    ask("committed only, past the end", request(of(topic, part(9)), isolation_level=1))
    ask("isolation level 7", request(of(topic, part(0)), isolation_level=7))
    ask("no topics", request())
    ask("no partitions", request(of(topic)))
    ask("the same partition twice", request(of(topic, part(0), part(3))))
    ask("partition 2 of 2", request(of(topic, part(0, 2))))
    ask("partition -1", request(of(topic, part(0, -1))))
    unknown = Topic(ask.name("unknown"), NOBODYS_ID)
    ask("an unknown topic", request(of(unknown, part(0))))
    ask("a known and an unknown topic", request(of(unknown, part(0)), of(topic, part(5))))
    ask("neither name nor id", request(of(Topic("", bytes(16)), part(0))))
    ask("bytes behind the request", request(of(topic, part(5))), trailing=b"more")
    ask("a rack", request(of(topic, part(5)), rack_id="here"))
    ask("a cluster's id", request(of(topic, part(5)), cluster_id="elsewhere"))


@scenario(FetchRequest)
def limits(ask: Asking) -> None:
    topic = ask.topic("limits", 2)
    for value in ("a", "b", "c"):
        ask.write(topic, batch(value * 100))
        ask.write(topic, batch(value * 100), 1)
    for most in (0, 1, 170, 200, 340, 400, -1):
        ask(f"{most} bytes of the partition", request(of(topic, part(0, most=most))))
        ask(f"{most} bytes in all", request(of(topic, part(0), part(0, 1)), max_bytes=most))
    ask("one byte of each partition", request(of(topic, part(0, most=1), part(0, 1, most=1))))
    ask("nothing of the first, all of the second", request(of(topic, part(3), part(0, 1, most=1))))
    ask("a short wait for nothing", request(of(topic, part(3)), max_wait_ms=30, min_bytes=1))
    ask("a short wait for too much", request(of(topic, part(2)), max_wait_ms=30, min_bytes=100_000))
    ask("no wait for too much", request(of(topic, part(2)), min_bytes=100_000))
    ask("a wait that an error ends", request(of(topic, part(99), part(3, 1)), max_wait_ms=5000, min_bytes=1))
    ask("negative patience", request(of(topic, part(3)), max_wait_ms=-1, min_bytes=1))


@scenario(FetchRequest)
def shortened(ask: Asking) -> None:
    """A log whose beginning was deleted."""
    topic = ask.topic("short")
    ask.write(topic, batch("a", "b", "c"))
    ask.write(topic, batch("d"))
    gone = DeleteRecordsRequest.Topic(
        name=topic.name, partitions=[DeleteRecordsRequest.Topic.Partition(partition_index=0, offset=2)]
    )
    ask.quietly(DeleteRecordsRequest(topics=[gone], timeout_ms=5000), 2)
    for offset in (0, 1, 2, 3, 4, 5):
        ask(f"offset {offset}", request(of(topic, part(offset))))


@scenario(FetchRequest)
def epochs(ask: Asking) -> None:
    topic = ask.topic("epochs")
    ask.write(topic, batch("a", "b"))
    for epoch in (-1, 0, 1, 7, -2):
        ask(f"leader epoch {epoch}", request(of(topic, part(0, epoch=epoch))))
        ask(f"last fetched epoch {epoch}", request(of(topic, part(1, last_epoch=epoch))))
    ask("both right, past the end", request(of(topic, part(3, epoch=0, last_epoch=0))))
    ask("both right, at the end", request(of(topic, part(2, epoch=0, last_epoch=0))))
    ask("wrong epoch, past the end", request(of(topic, part(3, epoch=1))))
    ask("an epoch of an unknown partition", request(of(topic, part(0, 5, epoch=1))))


@scenario(FetchRequest)
def as_replica(ask: Asking) -> None:
    topic = ask.topic("replica")
    ask.write(topic, batch("a"))
    for replica in (-2, -3, 0, 1, 2):
        state = FetchRequest.ReplicaState(replica_id=replica, replica_epoch=-1)
        ask(f"replica {replica}", request(of(topic, part(0)), replica_id=replica, replica_state=state))


@scenario(FetchRequest)
def sessions(ask: Asking) -> None:
    if ask.version < 7:
        return
    topic = ask.topic("sessions", 3)
    ask.write(topic, batch("a"))
    everything = of(topic, part(0), part(0, 1), part(0, 2))
    first = ask("a new session", request(everything, session_epoch=0))
    known = {"session_id": first.session_id}
    ask("moved on", request(of(topic, part(1)), session_epoch=1, **known))
    ask("nothing new", request(session_epoch=2, **known))
    ask.write(topic, batch("b"), 1)
    ask("something new", request(session_epoch=3, **known))
    ask("still there", request(session_epoch=4, **known))
    ask("a wrong epoch", request(session_epoch=7, **known))
    ask("an epoch again", request(session_epoch=4, **known))
    ask("the right epoch after wrong ones", request(of(topic, part(1, 1)), session_epoch=5, **known))
    forgotten = Forgotten(topic=topic.name, topic_id=topic.id, partitions=[1, 2])
    ask("partitions forgotten", request(session_epoch=6, forgotten_topics_data=[forgotten], **known))
    ask.write(topic, batch("c"), 1)
    ask("news of what was forgotten", request(session_epoch=7, **known))
    ask("a partition added", request(of(topic, part(0, 2)), session_epoch=8, **known))
    ask("a partition that is not there", request(of(topic, part(0, 9)), session_epoch=9, **known))
    ask("which is said again", request(session_epoch=10, **known))
    ask("out of range", request(of(topic, part(50)), session_epoch=11, **known))
    ask("which is said again, too", request(session_epoch=12, **known))
    ask("back in range", request(of(topic, part(1)), session_epoch=13, **known))
    ask("closed", request(session_epoch=-1, **known))
    ask("after its end", request(session_epoch=14, **known))
    ask("an unknown session", request(session_id=123456, session_epoch=1))
    ask("no session, but an epoch", request(session_id=0, session_epoch=1))
    ask("no session, epoch -2", request(session_id=0, session_epoch=-2))
    ask("an unknown session closed", request(session_id=123456, session_epoch=-1))
    ask("an unknown session renewed", request(everything, session_id=123456, session_epoch=0))
    ask("a new session of nothing", request(session_epoch=0))
    ask("a new session of the unknown", request(of(Topic(ask.name("x"), NOBODYS_ID), part(0)), session_epoch=0))
    again = ask("another new session", request(everything, session_epoch=0))
    ask("renewed", request(of(topic, part(0)), session_epoch=0, session_id=again.session_id))
    ask("the one it was before", request(session_epoch=1, session_id=again.session_id))


@scenario(FetchRequest)
def emptied_sessions(ask: Asking) -> None:
    """What becomes of a session when nothing is left in it."""
    if ask.version < 7:
        return
    topic = ask.topic("emptied", 2)
    ask.write(topic, batch("a"))
    first = ask("a new session", request(of(topic, part(0)), session_epoch=0))
    known = {"session_id": first.session_id}
    forgotten = Forgotten(topic=topic.name, topic_id=topic.id, partitions=[0])
    ask("everything forgotten", request(session_epoch=1, forgotten_topics_data=[forgotten], **known))
    ask("and asked again", request(session_epoch=2, **known))
    ask("wakes up", request(of(topic, part(0, 1)), session_epoch=3, **known))


@scenario(FetchRequest)
def mixed_sessions(ask: Asking) -> None:
    """A session that was begun with names, and goes on with ids; or the other way round."""
    if ask.version not in (12, 13):
        return
    topic = ask.topic("mixed")
    ask.write(topic, batch("a"))
    other = 13 if ask.version == 12 else 12
    begun = ask.quietly(request(of(topic, part(0)), session_epoch=0), other)
    ask("goes on otherwise", request(of(topic, part(0)), session_id=begun.session_id, session_epoch=1))
    ask("and once more", request(session_id=begun.session_id, session_epoch=1))
