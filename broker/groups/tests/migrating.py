"""Groups whose members speak both protocols, for tests of how they change."""

from trilogue.broker.groups.subscription import read_assignment, write_assignment
from trilogue.broker.groups.tests.stage import Stage, subscription
from trilogue.wire.codec import build
from trilogue.wire.errors import ErrorCode
from trilogue.wire.internal.consumer_protocol import ConsumerProtocolSubscription

EAGER = {"range": subscription("t")}


def t(*partitions):
    return {("t", each) for each in partitions}


def cooperative(*owned, topics=("t",)):
    """What a cooperative member says of itself: it still has these."""
    partitions = [ConsumerProtocolSubscription.OwnedPartition(topic="t", partitions=list(owned))] if owned else []
    told = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=partitions)
    return {"cooperative-sticky": b"\0\1" + build(told, 1)}


def given(*partitions):
    return write_assignment({"t": list(partitions)} if partitions else {}, 0)


def classic(*clients, instance=None, **settings):
    """A stable classic group of consumers, c-1 for client c, that share t."""
    stage = Stage(group_consumer_assignment_interval_ms=0, **settings)
    for client in clients:
        stage.join(client=client, version=3, protocols=EAGER, instance=f"{instance}{client}" if instance else None)
    members = list(stage.group().members)
    for member in members[:-1]:
        holder = stage.group().members[member].instance_id
        stage.join(member, protocols=EAGER, instance=holder)
    generation = stage.group().generation
    size = 4 // len(members)
    shares = {each: given(*range(at * size, at * size + size)) for at, each in enumerate(members)}
    for member in reversed(members):
        holder = stage.group().members[member].instance_id
        stage.sync(member, generation, instance=holder, **{name.replace("-", "_"): it for name, it in shares.items()})
    assert stage.group().state_name == "Stable"
    return stage


def has(ticket):
    """The partitions in the answer to a SyncGroup."""
    told = ticket.response
    if told.error_code:
        return told.error_code
    return {(each.topic, i) for each in read_assignment(told.assignment).assigned_partitions for i in each.partitions}


def rejoin(stage, member, protocols=EAGER, **more):
    """A classic member joins and asks what it has: its generation, and that."""
    joined = stage.join(member, protocols=protocols, **more).response
    assert joined.error_code == ErrorCode.NONE, joined
    return joined.generation_id, has(stage.sync(joined.member_id, joined.generation_id))


def kinds(stage):
    return stage.group().kind, {name: each.classic is not None for name, each in stage.group().members.items()}


def migrating():
    """A group of a classic member, c-1, and one of the new protocol, n: each has half of t."""
    stage = classic("c")
    assert stage.beat("n") == (2, set())
    assert stage.heartbeat("c-1", 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert rejoin(stage, "c-1") == (2, t(0, 1))
    assert stage.beat("n", 2, owned=[]) == (2, t(2, 3))
    return stage
