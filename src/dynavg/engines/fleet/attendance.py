"""Who is there, who is awaited at the start, who has gone: what a simulation never has to ask.

A fleet starts when the first `learners` learners are there, or `join_seconds` after its
coordinator: until then those who have come wait in the lobby, so that nobody trains far ahead of
those it is to be averaged with. Nothing here speaks; times are those of `time.monotonic`.
"""

from collections.abc import Collection, Iterable, Sequence

from dynavg.engines.fleet.config import FleetConfig

__all__ = ["Attendance"]


class Attendance:
    """The attendance of one fleet, since `now`.

    >>> attendance = Attendance(FleetConfig(learners=2), now=0.0)
    >>> attendance.come(4), attendance.come(1)
    ((), (1, 4))
    """

    def __init__(self, config: FleetConfig, now: float) -> None:
        self._config = config
        self.started = False
        self.known: set[int] = set()
        self._gone: set[int] = set()
        self._lobby: set[int] = set()
        self._busy_at = self._looked_at = now
        self._heard_from: dict[int, float] = {}

    @property
    def look_seconds(self) -> float:
        """How often to look who is silent."""
        return min(self._config.report_seconds, self._config.answer_seconds)

    def take_up(
        self, known: Iterable[int], members: Sequence[int], begun: bool, now: float
    ) -> None:
        """Go on where a coordinator died; `begun` says that there was a check already."""
        self.known = set(known) | set(members)
        self._gone = self.known - set(members)
        self._heard_from = dict.fromkeys(members, now)
        self.started = begun or len(self.known) >= self._config.learners
        self._lobby = set() if self.started else set(members)

    def hear(self, id: int, now: float) -> None:
        """Something came from this learner."""
        self._busy_at = self._heard_from[id] = now

    def come(self, id: int) -> Sequence[int]:
        """It has said hello; who is in by that."""
        self.known.add(id)
        self._gone.discard(id)
        if self.started:
            return (id,)
        self._lobby.add(id)
        return () if self.awaited else self.start()

    def go(self, id: int) -> None:
        """It has said goodbye."""
        self._gone.add(id)
        self._lobby.discard(id)

    @property
    def awaited(self) -> int:
        """How many more are awaited for the start."""
        return 0 if self.started else max(0, self._config.learners - len(self._lobby))

    def start(self) -> Sequence[int]:
        """Begin with those who are there; who is in by that."""
        self.started = True
        there, self._lobby = tuple(sorted(self._lobby)), set()
        return there

    def absent(self, members: Collection[int]) -> Sequence[int]:
        """Those who are expected to come, and have not."""
        hosts = self._config.hosts.values()
        expected = set(range(self._config.learners)).union(*hosts)
        return sorted(expected - set(members) - self._lobby - self._gone)

    def silent(self, members: Iterable[int], now: float) -> Sequence[tuple[int, float]]:
        """Members of whom nothing has been heard for too long, and for how long. Time that the
        coordinator itself has slept through is nobody's fault.
        """
        asleep = max(0.0, now - self._looked_at - 2 * self.look_seconds)
        self._looked_at = now
        silent = []
        for id in members:
            self._heard_from[id] = heard = self._heard_from.get(id, now) + asleep
            if now - heard > self._config.silence_seconds:
                silent.append((id, now - heard))
                self._busy_at = now  # from now on, it may come back
        return silent

    def finished(self, members: Collection[int], now: float) -> bool:
        """Whether nobody is left, and nobody who was dismissed may still come back."""
        if members or not self.started:
            return False
        quiet = now - self._busy_at
        if not self.known:
            return quiet > self._config.orphan_seconds
        return self.known <= self._gone or quiet > 2 * self._config.answer_seconds
