"""Clients of both protocols that come, go and hang in one group, and a coordinator that is restarted under them.

Whatever the order, and whatever the group is just then: no partition has two owners in one generation or epoch, and
what was committed does not go back.
"""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from trilogue.broker.groups.subscription import read_assignment, write_assignment
from trilogue.broker.groups.tests.stage import Stage, subscription
from trilogue.broker.groups.tests.test_simulation import GONE, QUICK, Commits
from trilogue.wire.errors import ErrorCode

OLD, NEW = st.sampled_from("ab"), st.sampled_from("xy")
EAGER = {"range": subscription("t")}


class Client:
    """Of either protocol: its epoch is its generation."""

    def __init__(self, member=""):
        self.member, self.epoch, self.owned = member, -1, set()
        self.joining = self.syncing = None


class Migrating(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.stage = Stage(group_consumer_assignment_interval_ms=0)
        self.clients = {}
        self.lives = 0
        self.commits = Commits(self.stage)

    # -- the new protocol ------------------------------------------------------------------------------

    @rule(name=NEW)
    def heartbeat(self, name):
        if client := self.clients.get(name):
            self.hear(name, self.stage.beat(client.member, client.epoch, owned=client.owned))
        else:
            self.lives += 1
            client = self.clients[name] = Client(f"{name}{self.lives}")
            self.hear(name, self.stage.beat(client.member))

    @rule(name=NEW)
    def leave_new(self, name):
        if client := self.clients.pop(name, None):
            self.stage.beat(client.member, -1)

    def hear(self, name, answer):
        client = self.clients[name]
        if answer.code in GONE:
            del self.clients[name]
            return
        assert answer.code == ErrorCode.NONE, answer
        client.epoch = answer.epoch
        if answer.assigned is not None:
            client.owned = answer.assigned

    # -- the classic one -------------------------------------------------------------------------------

    @rule(name=OLD, steps=st.integers(1, 6))
    def advance(self, name, steps):
        """Whatever this client would do next.  Six steps take it from nothing to an assignment."""
        client = self.clients.setdefault(name, Client())
        for _ in range(steps):
            self.step(name, client)

    def step(self, name, client):
        if client.syncing:
            self.hear_assignment(client)
        elif client.joining:
            self.hear_generation(client)
        elif client.epoch < 0:
            self.lives += 1
            client.owned = set()
            client.joining = self.stage.join(client.member, client=name, fresh=str(self.lives), protocols=EAGER)
        else:
            self.react(client, self.stage.heartbeat(client.member, client.epoch))

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
            client.member, client.epoch = answer.member_id, answer.generation_id
            shares = {}
            if answer.leader == client.member:
                members = [each.member_id for each in answer.members]
                shares = {
                    each: write_assignment({"t": list(range(number, 4, len(members)))}, 0)
                    for number, each in enumerate(members)
                }
            client.syncing = self.stage.sync(client.member, client.epoch, **shares)

    def hear_assignment(self, client):
        answer = client.syncing.response
        if answer is None:
            return
        client.syncing = None
        if answer.error_code:
            self.react(client, answer.error_code)
        else:
            given = read_assignment(answer.assignment).assigned_partitions
            client.owned = {(each.topic, index) for each in given for index in each.partitions}

    def react(self, client, code):
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            client.epoch = -1
        elif code:
            client.__init__()

    @rule(name=OLD | NEW)
    def crash(self, name):
        self.clients.pop(name, None)

    @rule(name=OLD)
    def leave_old(self, name):
        client = self.clients.pop(name, None)
        if client and client.member:
            self.stage.leave(client.member)

    # -- what happens to all ---------------------------------------------------------------------------

    @rule(name=OLD | NEW, index=st.integers(0, 3))
    def commit(self, name, index):
        client = self.clients.get(name)
        if client and client.epoch >= 0 and ("t", index) in client.owned:
            self.commits.forward(index, client.member, client.epoch)

    @rule(seconds=st.sampled_from([0.5, 3, 9, 11, 31, 46]))
    def wait(self, seconds):
        self.stage.at(self.stage.now + seconds)

    @rule()
    def restart(self):
        """Whoever waits hears that the coordinator is gone, and asks again."""
        for client in self.clients.values():
            if client.joining or client.syncing:
                client.joining = client.syncing = None
                client.epoch = -1
        self.stage.open()

    @invariant()
    def no_partition_has_two_owners(self):
        group = self.stage.group()
        if group is None or group.is_empty:
            return
        if group.kind == "classic":
            epochs = dict.fromkeys(group.members, group.generation)
        else:
            epochs = {each.id: each.epoch for each in group.members.values()}
            known = [partition for each in group.members.values() for partition in (*each.assigned, *each.revoking)]
            assert len(known) == len(set(known)), group.members
        # Whoever is in another epoch than the coordinator says is fenced already, and will hear so.
        current = [each for each in self.clients.values() if epochs.get(each.member) == each.epoch]
        owned = [partition for each in current for partition in each.owned]
        assert len(owned) == len(set(owned)), {each.member: (each.epoch, each.owned) for each in current}

    @invariant()
    def nothing_committed_goes_back(self):
        if self.stage.now < 600_000:
            self.commits.check()


Migrating.TestCase.settings = QUICK
TestMigrating = Migrating.TestCase
