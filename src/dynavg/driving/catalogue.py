"""The roads that come with `dynavg`, by name.

Learners are trained on `training`, its `mirror` and `narrow`; `heldout` is for judging only.
"""

from __future__ import annotations

from functools import cache

from dynavg.driving.tracks import Track, rounded

_TRAINING = [
    (0, 0), (95, -6), (150, 18), (172, 70), (140, 104), (96, 92), (70, 60), (36, 58),
    (30, 104), (-6, 138), (-62, 128), (-84, 92), (-52, 62), (-86, 34), (-62, -4),
]  # fmt: skip
_NARROW = [
    (0, 0), (60, 0), (84, 16), (84, 44), (60, 44), (46, 62), (70, 84), (60, 112), (28, 110),
    (16, 84), (22, 52), (-4, 40), (-14, 72), (-8, 108), (-40, 116), (-62, 92), (-44, 64),
    (-70, 44), (-62, 12), (-34, 22), (-24, 2),
]  # fmt: skip
_HELDOUT = [
    (0, 0), (70, -14), (118, 10), (108, 56), (140, 88), (112, 124), (60, 112), (40, 76),
    (4, 88), (-16, 130), (-66, 124), (-72, 76), (-44, 46), (-78, 10), (-42, -18),
]  # fmt: skip

NAMES = ("training", "mirror", "narrow", "heldout")


@cache
def track(name: str) -> Track:
    """The track of that name.

    >>> track("narrow").width < track("training").width
    True
    """
    match name:
        case "training":
            return rounded(name, 6.0, _corners(_TRAINING), softness=17.0)
        case "mirror":
            return track("training").mirrored(name)
        case "narrow":
            return rounded(name, 3.0, _corners(_NARROW), softness=8.6, wear=1.0)
        case "heldout":
            return rounded(name, 4.8, _corners(_HELDOUT), softness=14.0, wear=0.4)
    raise ValueError(f"unknown track {name!r}: the tracks are {', '.join(NAMES)}")


def _corners(corners: list[tuple[int, int]]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in corners]
