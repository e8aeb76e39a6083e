"""A transaction coordinator without a broker: what it stores is taken over, everything else is kept for a look."""

from trilogue.broker.config import BrokerConfig
from trilogue.broker.machines.effects import Effect, Reply, Send, Store
from trilogue.broker.names import TopicPartition
from trilogue.broker.transactions.coordinator import Outcome, TransactionCoordinator, WriteMarkers
from trilogue.broker.transactions.transaction import NOBODY, Identity, Transaction

ORDERS_0, ORDERS_1, BILLS_0 = ("orders", 0), ("orders", 1), ("bills", 0)
INDEX = 7
"""The partition of __transaction_state."""


def wall_ms(now: float) -> int:
    """In tests the wall's clock began with ours."""
    return int(now * 1000)


class Desk:
    """Asks the machine, and does what it says, as the runner would."""

    def __init__(self, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = BrokerConfig.parse(given)
        self.machine = TransactionCoordinator(INDEX, self.config, wall_ms)
        self.log: list[Store] = []
        self.sent: list[WriteMarkers] = []
        self.next_id = 1000

    def carry_out(self, todo: list[Effect]) -> object:
        """The answer, if there is one."""
        answer = None
        for effect in todo:
            match effect:
                case Store(records):
                    self.log.append(effect)
                    for put in records:
                        self.machine.replay(put, 0, NOBODY)
                case Send(message):
                    self.sent.append(message)
                case Reply(_, response):
                    answer = response
        return answer

    def init(self, now: float, name: str = "shop", who: Identity | None = None, timeout_ms: int = 60_000) -> Outcome:
        new_id = NOBODY
        if self.machine.wants_new_id(name):
            new_id = self.next_id
            self.next_id += 1
        return self.carry_out(self.machine.initialise(now, name, timeout_ms, who, new_id, "ticket"))

    def add(self, now: float, who: Identity, *places: TopicPartition, name: str = "shop", version: int = 0) -> Outcome:
        return self.carry_out(self.machine.add(now, name, who, frozenset(places), version, "ticket"))

    def verify(self, now: float, who: Identity, *places: TopicPartition, name: str = "shop") -> object:
        return self.carry_out(self.machine.verify(now, name, who, frozenset(places), "ticket"))

    def end(self, now: float, who: Identity, committed: bool, version: int = 0, name: str = "shop") -> Outcome:
        new_id = self.next_id
        self.next_id += self.machine.wants_new_id(name)
        return self.carry_out(self.machine.end(now, name, who, committed, version, new_id, "ticket"))

    def write_markers(self, now: float) -> None:
        """All that were sent have been written."""
        for message in self.sent:
            self.carry_out(self.machine.completed(now, message))
        self.sent.clear()

    def tick(self, now: float) -> None:
        self.carry_out(self.machine.tick(now))

    def restart(self, now: float) -> "Desk":
        """Another coordinator loads what this one has stored."""
        after = Desk()
        after.config, after.next_id = self.config, self.next_id
        after.machine = TransactionCoordinator(INDEX, self.config, wall_ms)
        for store in self.log:
            for put in store.records:
                after.machine.replay(put, 0, NOBODY)
        after.log = list(self.log)
        after.carry_out(after.machine.loaded(now))
        return after

    def state(self, name: str = "shop") -> str | None:
        known = self.machine.transactions.get(name)
        return known.state.value if known else None

    def known(self, name: str = "shop") -> Transaction:
        return self.machine.transactions[name]
