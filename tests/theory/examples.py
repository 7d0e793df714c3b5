"""Hypothesis strategies: scripts, and operators to put them before."""

import numpy as np
from hypothesis import strategies as st

import dynavg
from tests.theory.scripted import WALKS, Script, script

STRATEGIES = ("random_doubling", "random_one", "all", "tripling_half", "least_recent")
deltas = st.sampled_from([0.0, 0.1, 0.37, 1.0, 2.3, 5.0, 17.0])
seeds = st.integers(0, 2**32 - 1)
few = st.integers(1, 9)


@st.composite
def scripts(
    draw: st.DrawFn,
    learners: st.SearchStrategy[int] = few,
    walks: tuple[str, ...] = tuple(WALKS),
    equal_sizes: bool | None = None,
    dtype: type = np.float64,
    rounds: int = 12,
) -> Script:
    """Random walks of up to 9 learners with up to 6 parameters."""
    m, P = draw(learners), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(seeds))
    steps = WALKS[draw(st.sampled_from(walks))](rng, rounds, m, P)
    equal = draw(st.booleans()) if equal_sizes is None else equal_sizes
    sizes = draw(st.integers(1, 4)) if equal else rng.integers(1, 6, (rounds, m))
    return script(steps, sizes, start=rng.standard_normal(P), dtype=dtype)


def dynamics(**fixed: object) -> st.SearchStrategy[dynavg.Dynamic]:
    """Dynamic operators with all their options; `fixed` ones stay."""
    options: dict[str, st.SearchStrategy[object]] = {
        "delta": deltas,
        "every": st.integers(1, 3),
        "augmentation": st.sampled_from(STRATEGIES),
        "weights": st.sampled_from(["equal", "samples"]),
        "distance": st.sampled_from(["squared", "norm"]),
        "counter": st.sampled_from(["at_least", "exactly", "off"]),
        "reset_on_full": st.booleans(),
    }
    return st.builds(dynavg.Dynamic, **(options | {k: st.just(v) for k, v in fixed.items()}))


fedavgs = st.builds(
    dynavg.FedAvg,
    every=st.integers(1, 3),
    fraction=st.sampled_from([0.05, 0.3, 0.5, 0.7, 1.0]),
    receivers=st.sampled_from(["participants", "all"]),
    weights=st.sampled_from(["equal", "samples"]),
)

periodics = st.builds(
    dynavg.Periodic, every=st.integers(1, 3), weights=st.sampled_from(["equal", "samples"])
)
