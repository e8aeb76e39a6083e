"""All groups that hash to one partition of __consumer_offsets."""

from math import inf

from trilogue.broker.config import BrokerConfig
from trilogue.broker.effects import Effect, Put


class GroupCoordinator:
    """See `effects.Machine`."""

    def __init__(self, index: int, config: BrokerConfig) -> None:
        self._index, self._config = index, config

    @property
    def deadline(self) -> float:
        return inf

    def tick(self, now: float) -> list[Effect]:
        return []

    def replay(self, put: Put, offset: int, producer_id: int) -> None:
        """Nothing is kept yet."""

    def replay_end(self, producer_id: int, committed: bool) -> None:
        """Nothing is kept yet."""

    def loaded(self, now: float) -> list[Effect]:
        return []
