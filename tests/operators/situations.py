"""Situations in which an operator may find itself, and a run of one operator without a network."""

from hypothesis import strategies as st

from dynavg.protocol.operator import Ask, Average, Operator, Publish, Rest, Situation, Stage


def opened(members, violators=(), **known) -> Situation:
    members = range(members) if isinstance(members, int) else members
    return Situation(
        seed=known.pop("seed", 0),
        round=known.pop("round", 1),
        stage=Stage.OPENED,
        members=tuple(members),
        violators=tuple(violators),
        held=tuple(violators),
        **known,
    )


def averaged(members, held, distance=None, violators=(), **known) -> Situation:
    members = range(members) if isinstance(members, int) else members
    return Situation(
        seed=known.pop("seed", 0),
        round=known.pop("round", 1),
        stage=Stage.AVERAGED,
        members=tuple(members),
        violators=tuple(violators),
        held=tuple(held),
        distance=distance,
        **known,
    )


@st.composite
def situations(draw: st.DrawFn, held_at_least: int = 0) -> Situation:
    """Any situation that a coordinator can hand over."""
    members = range(3, 3 + 2 * draw(st.integers(held_at_least, 15)), 2)
    some = st.lists(st.sampled_from(members), unique=True) if members else st.just([])
    held = draw(some) or list(members[:held_at_least])
    stages = list(Stage) if held else [Stage.OPENED]
    return Situation(
        seed=draw(st.integers(0, 2**70)),
        round=draw(st.integers(1, 10**6)),
        stage=draw(st.sampled_from(stages)),
        members=tuple(members),
        violators=tuple(sorted(held[: draw(st.integers(0, len(held)))])),
        held=tuple(held),
        queries=draw(st.integers(0, 5)),
        distance=draw(st.floats(0)),
        last_synced={id: draw(st.integers(1, 5)) for id in held[:3]},
    )


class Run:
    """One check after the other: whoever is asked answers, all distances are the given ones."""

    def __init__(self, operator: Operator, members: int, distance: float = float("inf")) -> None:
        self.operator = operator
        self.members = tuple(range(members))
        self.distance = distance
        self.state = operator.init()
        self.round = 0

    def check(self, *violators: int) -> tuple[Publish | None, list[Ask]]:
        """How it ends, and what was asked on the way."""
        self.round += 1
        held, queries, stage = list(violators), [], Stage.OPENED
        for _ in range(3 * len(self.members) + 3):
            situation = Situation(
                seed=0,
                round=self.round,
                stage=stage,
                members=self.members,
                violators=violators,
                held=tuple(held),
                queries=len(queries),
                distance=self.distance if stage is Stage.AVERAGED else None,
            )
            self.state, move = self.operator.step(self.state, situation)
            match move:
                case Rest():
                    return None, queries
                case Ask(ids):
                    queries.append(move)
                    held += sorted(ids)
                    stage = Stage.COLLECTED
                case Average():
                    stage = Stage.AVERAGED
                case Publish():
                    return move, queries
        raise AssertionError("it never ends")
