"""Tables on terminals."""

from io import StringIO

from rich.console import Console

from dynavg.cli.output import table_of
from tests.experiments.made_up import diverged, points, run


def test_on_a_narrow_terminal_names_and_numbers_are_all_there():
    kinds = {"kind": "dynamic", "augmentation": "random_doubling", "delta": 0.25, "every": 10}
    drawn = Console(file=StringIO(), width=80)
    drawn.print(table_of(points(run(4.5e15, 1e9, **kinds), diverged(kind="periodic", every=1))))
    text = drawn.file.getvalue()
    for word in ("dynamic", "random_doubling", "0.25 10", "1 GB", "diverged:", "learner 1"):
        assert word in text
    assert "…" not in text
