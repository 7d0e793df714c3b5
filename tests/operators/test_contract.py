"""What every operator and every augmentation strategy must be: a new one runs through this."""

import inspect
from copy import deepcopy
from dataclasses import asdict, is_dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynavg.arguments import check_choice
from dynavg.operators import OPERATORS, Dynamic, FedAvg, NoSync, Periodic
from dynavg.operators.augmentation import STRATEGIES
from dynavg.protocol.operator import Ask, Average, Publish, Rest, Stage
from tests.operators.situations import Run, situations

EXAMPLES = {
    "nosync": [NoSync()],
    "periodic": [Periodic(), Periodic(every=3, weights="samples")],
    "fedavg": [
        FedAvg(every=2, fraction=0.4),
        FedAvg(every=1, fraction=1.0),
        FedAvg(every=1, fraction=1e-12, receivers="all"),
    ],
    "dynamic": [
        *(Dynamic(delta=1, augmentation=strategy) for strategy in STRATEGIES),
        Dynamic(delta=2, counter="exactly", distance="norm"),
        Dynamic(delta=0, every=3, counter="off", reset_on_full=True, weights="samples"),
    ],
}
ALL = [operator for operators in EXAMPLES.values() for operator in operators]
every_operator = pytest.mark.parametrize("operator", ALL, ids=repr)
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)


def test_every_operator_has_examples_here():
    assert EXAMPLES.keys() == OPERATORS.keys()
    for name, operators in EXAMPLES.items():
        assert all(type(operator) is OPERATORS[name] for operator in operators)


def test_every_strategy_is_an_allowed_argument_and_in_the_signature():
    signature = str(inspect.signature(Dynamic).parameters["augmentation"])
    for name in STRATEGIES:
        assert repr(name) in signature
        check_choice("Dynamic", "augmentation", name, STRATEGIES)


@every_operator
def test_an_operator_says_what_the_coordinator_needs_to_know(operator):
    assert operator.every is None or operator.every >= 1
    assert operator.weights in ("equal", "samples")
    assert isinstance(operator.measures, bool)
    assert operator == deepcopy(operator)
    assert hash(operator) == hash(deepcopy(operator))


@every_operator
def test_an_operators_state_is_frozen_and_goes_through_its_fields(operator):
    state = operator.init()
    assert is_dataclass(state)
    assert type(state).__dataclass_params__.frozen
    assert type(state)(**asdict(state)) == state


@every_operator
@settings(deadline=None)
@given(situation=situations(), checks=st.integers(0, 2))
def test_a_step_is_a_function_that_changes_nothing_and_asks_the_right_learners(
    operator, situation, checks
):
    run = Run(operator, 4)
    for _ in range(checks):
        run.check(*([2] if operator.measures else []))
    state = run.state
    before = deepcopy((state, situation))
    next_state, move = operator.step(state, situation)
    assert operator.step(state, situation) == (next_state, move)
    assert (state, situation) == before
    match move:
        case Ask(ids):
            assert ids
            assert len(set(ids)) == len(ids)
            allowed = set(situation.members)
            if situation.stage is Stage.AVERAGED or operator.measures:
                allowed -= set(situation.held)
            assert set(ids) <= allowed
        case Average():
            assert situation.held
            assert situation.stage is not Stage.AVERAGED
        case Publish(ids):
            assert situation.stage is Stage.AVERAGED
            assert ids == tuple(sorted(set(ids)))
            assert set(ids) <= set(situation.members)
        case Rest():
            assert situation.stage is Stage.OPENED or isinstance(operator, NoSync)


@every_operator
@settings(deadline=None)
@given(
    distance=st.sampled_from([0.0, 1.5, float("inf"), float("nan")]),
    members=st.integers(0, 12),
    some=st.lists(st.sets(st.integers(0, 11)), min_size=3, max_size=3),
)
def test_every_check_ends_and_gives_the_average_to_those_who_made_it(
    operator, distance, members, some
):
    run = Run(operator, members, distance)
    for ids in some:
        violators = sorted(ids & set(run.members)) if operator.measures else []
        end, queries = run.check(*violators)
        if end is None:
            assert not queries
            continue
        asked = [id for ask in queries for id in ask.ids]
        assert set(end.ids) >= {*violators, *asked}
        assert len(set(asked)) == len(asked)
        assert end.as_reference == (end.ids == run.members)


@every_strategy
@settings(deadline=None)
@given(situation=situations(held_at_least=1))
def test_a_strategy_is_a_function_that_asks_at_least_one_member_of_the_rest(strategy, situation):
    if not situation.rest:
        return
    before = deepcopy(situation)
    ids = strategy(situation)
    assert strategy(situation) == ids
    assert situation == before
    assert ids
    assert set(ids) <= set(situation.rest)
    assert ids == tuple(sorted(set(ids)))
