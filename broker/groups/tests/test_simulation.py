"""Clients that come, go, hang and start over, and a coordinator that is restarted under them.

Whatever the order: no partition has two owners, and what was committed does not go back.
"""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trilogue.broker.groups.tests.stage import Stage, image
from trilogue.wire.errors import ErrorCode

NAMES = st.sampled_from("abcd")
GONE = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND)


class Commits:
    """Owners commit one more than was committed; those who are owners no more commit what they remember."""

    def __init__(self, stage):
        self.stage = stage
        self.last = {}

    def forward(self, partition, member, epoch):
        offset = self.last.get(partition, 0) + 1
        if self.stage.commit(offset, partition=partition, member=member, generation=epoch) == ErrorCode.NONE:
            self.last[partition] = offset

    def check(self):
        for partition, offset in self.last.items():
            assert self.stage.offset(partition) == offset


class Consumers(RuleBasedStateMachine):
    """The new protocol: every client has an epoch, and what it believes to own."""

    def __init__(self):
        super().__init__()
        self.stage = Stage()
        self.clients = {}
        self.lives = 0
        self.commits = Commits(self.stage)

    def hear(self, name, answer):
        member, _, owned = self.clients[name]
        if answer.code in GONE:
            del self.clients[name]
            return
        assert answer.code == ErrorCode.NONE, answer
        if answer.assigned is not None:
            owned = answer.assigned
        self.clients[name] = member, answer.epoch, owned

    @rule(name=NAMES, topics=st.sampled_from([["t"], [], ["t", "u"]]), assignor=st.sampled_from(["range", None]))
    def join(self, name, topics, assignor):
        self.lives += 1
        member = f"{name}{self.lives}"  # under a new id: if it was here before, it has crashed
        self.clients[name] = member, 0, set()
        self.hear(name, self.stage.beat(member, topics=topics, assignor=assignor))

    @rule(name=NAMES)
    def heartbeat(self, name):
        if name in self.clients:
            member, epoch, owned = self.clients[name]
            self.hear(name, self.stage.beat(member, epoch, owned=owned))

    @rule(name=NAMES)
    def heartbeat_that_says_nothing(self, name):
        if name in self.clients:
            member, epoch, _ = self.clients[name]
            answer = self.stage.beat(member, epoch)
            if answer.code == ErrorCode.NONE and answer.assigned is not None:
                # It has been told, and still has everything: it gives back with its next heartbeat.
                self.clients[name] = member, answer.epoch, answer.assigned
            else:
                self.hear(name, answer)

    @rule(name=NAMES)
    def heartbeat_whose_answer_is_lost(self, name):
        if name in self.clients:
            member, epoch, owned = self.clients[name]
            self.stage.beat(member, epoch, owned=owned)

    @rule(name=NAMES)
    def start_over(self, name):
        if name in self.clients:
            member, _, _ = self.clients[name]
            self.clients[name] = member, 0, set()
            self.hear(name, self.stage.beat(member, 0))

    @rule(name=NAMES)
    def leave(self, name):
        if name in self.clients:
            member, _, _ = self.clients.pop(name)
            self.stage.beat(member, -1)

    @rule(name=NAMES, index=st.integers(0, 5))
    def commit(self, name, index):
        if name in self.clients and ("t", index) in self.clients[name][2]:
            self.commits.forward(index, *self.clients[name][:2])

    @rule(seconds=st.sampled_from([0.5, 1, 5, 20, 31, 50]))
    def wait(self, seconds):
        self.stage.at(self.stage.now + seconds)

    @rule()
    def restart(self):
        self.stage.open()

    @precondition(lambda self: len(self.stage.world.image.topics["t"].partitions) < 6)
    @rule()
    def grow(self):
        self.stage.world.image = image(t=len(self.stage.world.image.topics["t"].partitions) + 1, u=1)

    @invariant()
    def no_partition_has_two_owners(self):
        group = self.stage.group()
        if group is None or group.is_empty:
            return
        known = [partition for each in group.members.values() for partition in (*each.assigned, *each.revoking)]
        assert len(known) == len(set(known)), group.members
        believed = [
            partition for member, _, owned in self.clients.values() if member in group.members for partition in owned
        ]
        assert len(believed) == len(set(believed)), (self.clients, group.members)

    @invariant()
    def nothing_committed_goes_back(self):
        if self.stage.now < 600_000:
            self.commits.check()


class ClassicClient:
    def __init__(self):
        self.member, self.generation, self.owned = "", -1, frozenset()
        self.joining = self.syncing = None


class ClassicConsumers(RuleBasedStateMachine):
    """The classic protocol: the leader shares out what there is."""

    def __init__(self):
        super().__init__()
        self.stage = Stage()
        self.clients = {}
        self.commits = Commits(self.stage)
        self.lives = 0

    @rule(name=NAMES)
    def start(self, name):
        self.clients[name] = ClassicClient()

    @rule(name=NAMES)
    def advance(self, name):
        """Whatever this client would do next."""
        client = self.clients.get(name)
        if client is None:
            return
        if client.syncing:
            self.hear_assignment(client)
        elif client.joining:
            self.hear_generation(client)
        elif client.generation < 0:
            self.lives += 1
            client.owned = frozenset()
            client.joining = self.stage.join(client.member, client=name, fresh=str(self.lives), session=10)
        else:
            code = self.stage.heartbeat(client.member, client.generation)
            self.react(client, code)

    def hear_generation(self, client):
        answer = client.joining.response
        if answer is None:
            return
        client.joining = None
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            client.member = answer.member_id
        elif answer.error_code:
            self.react(client, answer.error_code)
        else:
            client.member, client.generation = answer.member_id, answer.generation_id
            shares = {}
            if answer.leader == client.member:
                members = [each.member_id for each in answer.members]
                shares = {each: bytes(range(number, 4, len(members))) for number, each in enumerate(members)}
            client.syncing = self.stage.sync(client.member, client.generation, **shares)

    def hear_assignment(self, client):
        answer = client.syncing.response
        if answer is None:
            return
        client.syncing = None
        if answer.error_code:
            self.react(client, answer.error_code)
        else:
            client.owned = frozenset(answer.assignment)

    def react(self, client, code):
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            client.generation = -1
        elif code:
            client.__init__()

    @rule(name=NAMES)
    def leave(self, name):
        client = self.clients.pop(name, None)
        if client and client.member:
            self.stage.leave(client.member)

    @rule(name=NAMES, index=st.integers(0, 3))
    def commit(self, name, index):
        client = self.clients.get(name)
        if client and client.generation >= 0 and index in client.owned:
            self.commits.forward(index, client.member, client.generation)

    @rule(seconds=st.sampled_from([0.5, 3, 9, 11, 31]))
    def wait(self, seconds):
        self.stage.at(self.stage.now + seconds)

    @rule()
    def restart(self):
        """Whoever waits hears that the coordinator is gone, and asks again."""
        for client in self.clients.values():
            client.joining = client.syncing = None
            if not client.owned:
                client.generation = -1
        self.stage.open()

    @invariant()
    def no_partition_has_two_owners_in_a_generation(self):
        by_generation = {}
        for client in self.clients.values():
            if client.generation >= 0:
                by_generation.setdefault(client.generation, []).extend(client.owned)
        current = self.stage.group().generation if self.stage.group() else -1
        owned = by_generation.get(current, [])
        assert len(owned) == len(set(owned))

    @invariant()
    def nothing_committed_goes_back(self):
        if self.stage.now < 600_000:
            self.commits.check()


QUICK = settings(max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
Consumers.TestCase.settings = QUICK
ClassicConsumers.TestCase.settings = QUICK
TestConsumers = Consumers.TestCase
TestClassicConsumers = ClassicConsumers.TestCase
