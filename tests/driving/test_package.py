import subprocess
import sys

_TRY = """
import sys
import dynavg
print("dynavg.driving" in sys.modules, "cv2" in sys.modules)
for missing in ("cv2", "gymnasium", "websockets"):
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name == missing}
    sys.modules[missing] = None
    try:
        import dynavg.driving
    except ImportError as error:
        print(error)
    del sys.modules[missing]
    sys.modules.update(kept)
"""


def test_dynavg_works_without_the_extra_and_driving_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", _TRY], capture_output=True, text=True, check=True)
    first, *errors = done.stdout.splitlines()
    assert first == "False False"
    assert errors == [
        f"dynavg.driving needs {missing}, which is not installed: pip install dynavg[driving]"
        for missing in ("cv2", "gymnasium", "websockets")
    ]
