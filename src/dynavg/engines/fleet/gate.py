"""Who has reached the next check: the barrier of lockstep, and the clock of scheduled operators."""

from collections.abc import Iterable

from dynavg.engines.fleet.control import Note

__all__ = ["Gate"]


class Gate:
    """Checks come every `every` rounds; `released` is the last one that is over.

    >>> from dynavg.engines.fleet.control import Kind
    >>> gate = Gate(every=5)
    >>> gate.reach(Note(Kind.DONE, sender=0, round=5))
    >>> gate.missing(members=[0, 1])
    [1]
    """

    def __init__(self, every: int, released: int = 0) -> None:
        self.every = every
        self.released = released
        self._reached: dict[int, Note] = {}

    @property
    def next(self) -> int:
        """The round of the next check."""
        return (self.released // self.every + 1) * self.every

    @property
    def begun(self) -> bool:
        """Whether somebody waits at the next check."""
        return any(note.round >= self.next for note in self._reached.values())

    def reach(self, note: Note) -> None:
        """A learner has come to a check."""
        self._reached[note.sender] = note

    def forget(self, id: int) -> None:
        """A learner has gone, or starts anew."""
        self._reached.pop(id, None)

    def missing(self, members: Iterable[int]) -> list[int]:
        """Who has not come to the next check yet."""
        return [id for id in members if not self._is_there(id)]

    def distances(self, members: Iterable[int]) -> list[float]:
        """How far from the reference they were."""
        return [self._reached[id].distance for id in members if id in self._reached]

    def release(self) -> None:
        """The check is over."""
        self.released = self.next

    def _is_there(self, id: int) -> bool:
        return id in self._reached and self._reached[id].round >= self.next
