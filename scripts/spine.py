"""How much of agentd a message and a beat pass: `python scripts/spine.py [--list]`.

A daemon with the offline provider is started in a folder of its own. After a first message, so that
nothing is counted that is done once, "Hello" is sent and traced, then a forced beat. Counted are
the modules and the functions of ours that ran between the request and the answer, on every thread,
the timers of the daemon included. Those and what goes on in the background differ from run to run,
so each journey is made three times: told are the first, and what ran in all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = str(ROOT / "agentd") + os.sep
_TIMES = 3
_PAUSE = 0.02  # seconds between two looks at what is wanted
_wait = threading.Event().wait  # nothing ends it before its seconds are over


def traced(folder: Path) -> None:
    """Be the daemon; while `folder` holds `NAME.on`, note what runs, and then write it as
    `NAME.json`.
    """
    seen: set[CodeType] = set()
    watching = threading.Event()

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and watching.is_set():
            seen.add(frame.f_code)

    def look() -> None:
        while True:
            _wait(_PAUSE)
            for mark in folder.glob("*.on"):
                seen.clear()
                watching.set()
                (folder / f"{mark.stem}.watched").touch()
                while mark.exists():
                    _wait(_PAUSE)
                watching.clear()
                ours = [code for code in list(seen) if code.co_filename.startswith(PACKAGE)]
                told = sorted([code.co_filename, code.co_qualname] for code in ours)
                (folder / f"{mark.stem}.json").write_text(json.dumps(told))

    threading.Thread(target=look, daemon=True).start()
    threading.setprofile(profile)
    sys.setprofile(profile)
    sys.argv = ["agentd", "run"]
    from agentd.app.cli.foreground import main

    main()


def _passed(folder: Path, name: str, *command: str) -> list[list[str]]:
    """What ran in the daemon while the command did."""
    mark = folder / f"{name}.on"
    mark.touch()
    _until(folder / f"{name}.watched")
    _agentd(*command)
    mark.unlink()
    _until(folder / f"{name}.json")
    told: list[list[str]] = json.loads((folder / f"{name}.json").read_text())
    return told


def _until(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, path
        _wait(_PAUSE)
    _wait(_PAUSE)


def _agentd(*command: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "agentd", *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )


def main() -> None:
    """Print modules and functions of each journey; with `--list` each of them."""
    if sys.argv[1:2] == ["--daemon"]:
        traced(Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as home:
        os.environ["AGENTD_HOME"] = home
        folder = Path(home) / "trace"
        folder.mkdir()
        _agentd("init")
        command = [sys.executable, __file__, "--daemon", str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        daemon = subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        try:
            _until(Path(home) / "agentd.sock")
            _agentd("send", "Good morning")
            _wait(3)  # what follows a start and a first message has ended
            hello, beat = ("send", "Hello"), ("heartbeat", "run", "--force")
            journeys = {
                '"Hello"': [_passed(folder, f"hello{n}", *hello) for n in range(_TIMES)],
                "a forced beat": [_passed(folder, f"beat{n}", *beat) for n in range(_TIMES)],
            }
        finally:
            daemon.terminate()
            daemon.wait()
    for name, runs in journeys.items():
        first, *others = runs
        always = [one for one in first if all(one in other for other in others)]
        print(f"{name}: {_counted(first)}")
        print(f"  in each of {_TIMES}: {_counted(always)}")
        if "--list" in sys.argv:
            for path in sorted({path for path, _ in first}):
                names = ", ".join(function for one, function in first if one == path)
                print(f"  {path.removeprefix(str(ROOT) + os.sep)}: {names}")


def _counted(passed: list[list[str]]) -> str:
    """How many; comprehensions and lambdas, which a reader finds where they are used, are named
    apart.
    """
    inline = sum(function.endswith(">") for _, function in passed)
    modules = len({path for path, _ in passed})
    return f"{modules} modules, {len(passed)} functions, {inline} of them comprehensions or lambdas"


if __name__ == "__main__":
    main()
