"""Who is due when.  Asked for the earliest after every request, so that must not take a look at everybody."""

from heapq import heappop, heappush
from math import inf


class Deadlines:
    """One deadline a name.  A heap of all that were ever set; what has been changed since is passed over."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, name: str, at: float) -> None:
        self._at[name] = at
        heappush(self._heap, (at, name))

    def advance(self, name: str, at: float) -> None:
        """Not later than this.  Who is due too early is set anew then, so that heartbeats put nothing on the heap."""
        if at < self._at.get(name, inf):
            self.set(name, at)

    def drop(self, name: str) -> None:
        self._at.pop(name, None)

    @property
    def earliest(self) -> float:
        heap = self._heap
        while heap and self._at.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else inf

    def due(self, now: float) -> list[str]:
        """Everybody whose time has come, the earliest first; they are dropped."""
        found = []
        while self.earliest <= now:
            name = heappop(self._heap)[1]
            del self._at[name]
            found.append(name)
        return found
