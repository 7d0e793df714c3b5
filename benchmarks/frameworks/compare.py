"""dynavg beside other frameworks for simulated federated learning, on the same work.

    python benchmarks/frameworks/compare.py [--turns 3] [--only NAME ...] [--keep FILE] [--json]

Every other framework is installed into an environment of its own on first use. All take turns; each
run is a process of its own, which reads the same data and the same weights to start from and tells
what it trained. Medians are compared, after a check that all did the same. With `--keep`, runs are
added to a file and the table is that of all of them, so that a long comparison can be made in
pieces; `--turns 0` only prints it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import work

from dynavg.data import cache_folder

HERE = Path(__file__).parent
TORCH = "torch==2.13.0"
SAME = 0.02
"""How far a held-out loss may be from ours, relative to it: all do the same arithmetic, but where
two pixels are equal up to rounding, max-pooling may pick either."""

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONWARNINGS": "ignore"}
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(os.cpu_count()))


@dataclass(frozen=True)
class Contender:
    """One way to run one framework. `reach` is how many times ours should be faster."""

    name: str
    runner: str
    requirement: str | None = None
    reach: float | None = None
    launch: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)


ONE_THREAD = {"OMP_NUM_THREADS": "1"}
PFL, FLUKE, FLOWER = "pfl[pytorch]==0.6.0", "fluke-fl==0.8.1", "flwr[simulation]==1.41.0"
OURS = Contender("dynavg", "run_dynavg.py")
OTHERS = (
    Contender("pfl-research, torchrun", "run_pfl.py", PFL, 3, TORCHRUN, ONE_THREAD),
    Contender("pfl-research, one thread", "run_pfl.py", PFL, 3, settings=ONE_THREAD),
    Contender("fluke, one thread", "run_fluke.py", FLUKE, 3, settings=ONE_THREAD),
    Contender("Flower", "run_flower.py", FLOWER, 20),
    Contender("fluke", "run_fluke.py", FLUKE, 3),
    Contender("pfl-research", "run_pfl.py", PFL, 3),
)

Run = dict[str, Any]


def python_of(contender: Contender, envs: Path) -> str:
    """The interpreter of its environment, which is made if it is not there yet."""
    if contender.requirement is None:
        return sys.executable
    place = envs / contender.requirement.replace("[", "-").replace("]", "").replace("==", "-")
    python, made = place / "bin" / "python", place / ".installed"
    if not made.exists():
        sys.stderr.write(f"Installing {contender.requirement} into {place}\n")
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        pins = place / "constraints.txt"
        pins.write_text(TORCH + "\n")
        # torch first: if it came with the package, pip might look at builds of many GB.
        for wanted in (TORCH, contender.requirement):
            pip = [python, "-m", "pip", "install", "--quiet", "--constraint", pins, wanted]
            subprocess.run(pip, check=True)
        made.touch()
    return str(python)


def run(contender: Contender, python: str, path: Path) -> Run:
    """One run in a process of its own: the last line that it prints."""
    told = {"PYTHONPATH": str(HERE), "PYTHONUNBUFFERED": "1"} | QUIET | LOOPBACK
    command = [python, *contender.launch, str(HERE / contender.runner), str(path)]
    ran = subprocess.run(
        command,
        env=dict(os.environ) | told | contender.settings,
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode or not lines:
        raise SystemExit(f"{contender.name} failed:\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}")
    return {"name": contender.name, **json.loads(lines[-1])}


def check(runs: Sequence[Run], samples: int) -> None:
    """That all trained the same model on the same number of samples to the same loss."""
    ours = next((one for one in runs if one["name"] == OURS.name), runs[0])
    for one in runs:
        same = one["samples"] == samples and one["parameters"] == ours["parameters"]
        if not same or abs(one["loss"] - ours["loss"]) > SAME * ours["loss"]:
            wanted = f"{samples} samples, {ours['parameters']} parameters, loss {ours['loss']:.4f}"
            raise SystemExit(f"{one['name']} did not do the same work ({wanted}): {one}")


def table(runs: Sequence[Run]) -> list[Run]:
    """A row per way of running, with medians; ours first."""

    def seconds(name: str) -> float:
        return statistics.median(one["seconds"] for one in runs if one["name"] == name)

    rows = []
    for contender in (OURS, *OTHERS):
        own = [one for one in runs if one["name"] == contender.name]
        if not own:
            continue
        row = {key: own[-1][key] for key in ("name", "version", "torch", "threads", "loss")}
        row |= {"runs": len(own), "seconds": seconds(contender.name)}
        if contender.reach is not None and any(one["name"] == OURS.name for one in runs):
            ratio = row["seconds"] / seconds(OURS.name)
            row |= {"ratio": ratio, "reach": contender.reach, "holds": ratio >= contender.reach}
        rows.append(row)
    return rows


def show(rows: Sequence[Run], timed: int) -> None:
    """The rows as Markdown; `timed` samples were trained in the seconds given."""
    heads = (
        "version",
        "processes × threads",
        "held-out loss",
        "seconds",
        "samples/s",
        "times dynavg's",
    )
    print("| |", " | ".join((*heads, "reach", "holds")), "|")
    print("|---" * (len(heads) + 3) + "|")
    for row in rows:
        verdict = " | | "
        if "ratio" in row:
            word = "yes" if row["holds"] else "**no**"
            verdict = f"{row['ratio']:.2f}× | ≥ {row['reach']:g}× | {word}"
        print(
            f"| {row['name']} | {row['version']} | {row['threads']} | {row['loss']:.4f} "
            f"| {row['seconds']:.2f} | {timed / row['seconds']:,.0f} | {verdict} |"
        )


def main() -> None:
    names = [contender.name for contender in (OURS, *OTHERS)]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--envs", type=Path, default=cache_folder() / "frameworks")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--samples", type=int, default=100, help="of each client")
    parser.add_argument("--rounds", type=int, default=4, help="of which the first is not timed")
    parser.add_argument("--keep", type=Path, help="a file of runs, to which these are added")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    size = {key: getattr(wanted, key) for key in ("clients", "samples", "rounds")}
    chosen = [contender for contender in (OURS, *OTHERS) if contender.name in wanted.only]
    pythons = [python_of(contender, wanted.envs) for contender in chosen] if wanted.turns else []
    runs: list[Run] = []
    if wanted.keep and wanted.keep.exists():
        kept = [json.loads(line) for line in wanted.keep.read_text().splitlines()]
        runs = [one for one in kept if one["size"] == size]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "work.npz"
        work.make(str(path), **size)
        for _ in range(wanted.turns):
            for contender, python in zip(chosen, pythons, strict=True):
                one = run(contender, python, path) | {"size": size}
                runs.append(one)
                sys.stderr.write(f"{one['name']}: {one['seconds']:.2f} s\n")
                if wanted.keep:
                    with wanted.keep.open("a") as file:
                        file.write(json.dumps(one) + "\n")
    per_round = wanted.clients * wanted.samples
    check(runs, per_round * wanted.rounds)
    rows = table(runs)
    if wanted.json:
        print(json.dumps(rows))
    else:
        show(rows, per_round * (wanted.rounds - 1))


if __name__ == "__main__":
    main()
