"""Specs: what they mean, and how mistakes in them are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynavg.experiments.assembly import arguments_of
from dynavg.experiments.spec import Spec
from dynavg.experiments.specfile import SpecError, load, overridden, parsed, to_toml
from tests.experiments import tiny

LINES = {
    "data": '"drift"',
    "model": '"drift_mlp"',
    "loss": '"binary_cross_entropy_with_logits"',
    "optimizer": '{kind = "SGD", lr = 0.2}',
    "learners": "4",
    "rounds": "10",
    "operators": '["nosync", {kind = "dynamic", delta = [0.1, 0.3], every = 2}]',
    "grid": '{"optimizer.lr" = [0.1, 0.2]}',
    "seeds": "[0, 1, 2]",
}


@pytest.fixture
def written(tmp_path):
    def write(**changes):
        path = tmp_path / "my.toml"
        path.write_text("".join(f"{key} = {text}\n" for key, text in (LINES | changes).items()))
        return path

    return write


def test_a_spec_means_every_combination_with_seeds_innermost(written):
    runs = load(written()).runs()
    assert len(runs) == 2 * 3 * 3
    assert [run.seed for run in runs[:3]] == [0, 1, 2]
    assert {(run.operator.get("delta"), run.optimizer["lr"]) for run in runs} == {
        (delta, lr) for delta in (None, 0.1, 0.3) for lr in (0.1, 0.2)
    }
    assert len({run.key for run in runs}) == len(runs)


def test_runs_of_a_seed_share_init_data_and_drifts():
    first, second = (arguments_of(run) for run in tiny.spec(seeds=[3]).runs())
    assert first["seed"] == second["seed"] == 3
    for round in (1, 7):
        for one, other in zip(
            first["streams"].at(1, round), second["streams"].at(1, round), strict=True
        ):
            assert one.equal(other)
    assert first["streams"].segments(5000) == second["streams"].segments(5000)
    assert len(first["streams"].segments(5000)) > 1


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("lerners", "4", "lerners: no such key; did you mean 'learners'?"),
        ("data", "{kind = 'drift', probabilty = 0.1}", "did you mean 'probability'?"),
        ("data", "{kind = 'mnist', shift = {kind = 'rotated', drift = [3]}}", "'drifts'"),
        ("data", "'cifar'", "data"),
        ("rounds", "0", "rounds: Input should be greater than 0"),
        ("rounds", "", "is no TOML"),
        ("seeds", "3", "seeds: Input should be a list"),
        ("operators", "['dynamik']", "kind 'dynamik' is no operator; allowed are serial, "),
        ("operators", "[{kind = 'dynamic', delta = -1}]", "delta"),
        ("operators", "[{kind = 'periodic', evry = 2}]", "periodic has no setting 'evry'"),
        ("operators", "[{delta = 1}]", "a table with a `kind` is wanted"),
        ("operators", "[]", "operators"),
        ("grid", "{'optimiser.lr' = [1]}", "there is no 'optimiser.lr' in the spec"),
        ("evaluate_every", "5", "evaluate_every wants held-out data"),
    ],
)
def test_a_mistake_is_told_with_what_is_allowed(written, key, text, message):
    path = written(**{key: text})
    with pytest.raises(SpecError) as raised:
        load(path)
    assert str(path) in str(raised.value)
    assert message in str(raised.value)


def test_a_spec_that_is_not_there_is_told(tmp_path):
    with pytest.raises(SpecError, match="no spec at"):
        load(tmp_path / "none.toml")


def test_overrides_lie_over_the_file(written):
    spec = load(written(), ["optimizer.lr=0.7", "rounds=3", "operators.1.every=5", "seeds=[9]"])
    assert (spec.optimizer["lr"], spec.rounds, spec.seeds) == (0.7, 3, (9,))
    assert spec.operators[1]["every"] == 5


def test_an_optimizer_without_a_kind_is_the_default_with_other_settings(written):
    without = load(written(optimizer="{momentum = 0.5}"), ["optimizer.lr=0.7"])
    assert without.optimizer == {"kind": "SGD", "lr": 0.7, "momentum": 0.5}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("rounds", "key=value is wanted"),
        ("operators.7.every=1", "is not one of 0 to 1"),
        ("rounds.deep=1", "not a table"),
        ("rouns=3", "did you mean 'rounds'?"),
    ],
)
def test_a_wrong_override_is_told(written, override, message):
    with pytest.raises(SpecError, match=r".*") as raised:
        load(written(), [override])
    assert message in str(raised.value)


@given(
    lr=st.floats(1e-6, 10),
    deltas=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=3, unique=True),
    seeds=st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True),
    title=st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=10),
)
def test_what_is_written_as_toml_reads_back_as_the_same_spec(
    tmp_path_factory, lr, deltas, seeds, title
):
    spec = tiny.spec(
        title=title,
        optimizer={"kind": "SGD", "lr": lr},
        operators=[{"kind": "dynamic", "delta": deltas}],
        seeds=seeds,
        grid={"init_noise": [0.0, 0.5]},
    )
    path = tmp_path_factory.mktemp("specs") / "spec.toml"
    path.write_text(to_toml(spec), encoding="utf-8")
    assert load(path) == spec


def test_the_name_and_the_place_of_the_data_do_not_change_the_key(tmp_path):
    settings = {"model": "mnist_cnn", "learners": 2, "rounds": 3, "operators": ["nosync"]}
    plain = Spec(data="mnist", **settings).runs()[0]
    moved = Spec(data="mnist", **settings).with_folder(tmp_path).runs()[0]
    other = Spec(data="mnist", **settings | {"rounds": 4}).runs()[0]
    assert plain.key == moved.key == plain.model_copy(update={"name": "x"}).key
    assert plain.key != other.key


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "resnet"}, "neither in dynavg.models nor an import path"),
        ({"model": "nowhere:make"}, "an import path such as my_package.nets:make is wanted"),
        ({"loss": "cross"}, "loss = 'cross'"),
        ({"optimizer": {"kind": "SDG"}}, "optimizer = 'SDG'"),
        ({"data": {"kind": "own", "factory": "tests.none:make"}}, "data.factory"),
    ],
)
def test_a_name_that_is_nothing_is_told(changes, message):
    with pytest.raises(ValueError, match=r".*") as raised:
        arguments_of(tiny.spec(**changes).runs()[0])
    assert message in str(raised.value)


def test_overridden_leaves_the_tree_as_it_was():
    tree = {"optimizer": {"lr": 0.1}}
    assert overridden(tree, ["optimizer.lr=1"]) == {"optimizer": {"lr": 1}}
    assert tree == {"optimizer": {"lr": 0.1}}


def test_parsed_names_where_a_tree_came_from():
    with pytest.raises(SpecError, match=r"^E6: learners: Field required"):
        parsed({"data": "drift", "model": "drift_mlp", "rounds": 3, "operators": ["nosync"]}, "E6")
