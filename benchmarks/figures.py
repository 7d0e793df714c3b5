"""How a benchmark tells what it found: one JSON line per figure, beside the number wanted."""

import json
import os
import sys


def show(name, wanted, **figures):
    """One figure, with the load of the machine while it was measured."""
    line = {"figure": name, "wanted": wanted, **figures, "load": os.getloadavg()[0]}
    print(json.dumps(line), flush=True)


def run(parts):
    """The parts that the command line names, all if it names none."""
    by_name = {part.__name__: part for part in parts}
    unknown = [name for name in sys.argv[1:] if name not in by_name]
    if unknown:
        sys.exit(f"no part {', '.join(unknown)}; there are {', '.join(by_name)}")
    for name in sys.argv[1:] or by_name:
        by_name[name]()
