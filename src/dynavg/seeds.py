"""All randomness of dynavg: a function of (seed, name, learner, round, call).

Nothing here keeps the state of a generator. Every draw starts a counter-based generator (Philox)
at a place that its five coordinates determine, so a resumed run needs the round number only, two
protocols with the same seed see the same data, and no draw depends on the thread that makes it.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

__all__ = ["generator", "integer", "sample"]

_WORD = (1 << 64) - 1


@lru_cache(maxsize=1024)
def _key(seed: int, name: str) -> NDArray[np.uint64]:
    return np.frombuffer(blake2b(f"{seed}/{name}".encode(), digest_size=16).digest(), "<u8")


def generator(
    seed: int, name: str, learner: int = 0, round: int = 0, call: int = 0
) -> np.random.Generator:
    """A NumPy generator that stands at the place (seed, name, learner, round, call).

    >>> a = generator(7, "data", learner=3, round=5).integers(1000, size=4)
    >>> b = generator(7, "data", learner=3, round=5).integers(1000, size=4)
    >>> bool((a == b).all())
    True
    """
    # The lowest counter word is the generator's own position: 2^64 blocks before it would run
    # into the place of the next call.
    # As uint64: NumPy would take large Python numbers through float64, and lose their low bits.
    counter = np.array((0, call & _WORD, round & _WORD, learner & _WORD), np.uint64)
    return np.random.Generator(np.random.Philox(key=_key(seed, name), counter=counter))


def integer(seed: int, name: str, learner: int = 0, round: int = 0, call: int = 0) -> int:
    """A 63-bit number at that place: the seed for a generator that is not NumPy's.

    >>> integer(7, "model") == integer(7, "model"), integer(7, "model") == integer(8, "model")
    (True, False)
    """
    return int(generator(seed, name, learner, round, call).integers(1 << 63))


def sample(
    seed: int, name: str, population: Sequence[int], size: int, round: int = 0, call: int = 0
) -> tuple[int, ...]:
    """`size` members of `population`, uniform without replacement, ascending.

    >>> sample(7, "draw", [2, 4, 6, 8], 4)
    (2, 4, 6, 8)
    """
    chosen = generator(seed, name, round=round, call=call).choice(
        len(population), size=size, replace=False
    )
    return tuple(sorted(population[int(index)] for index in chosen))
