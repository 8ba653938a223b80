"""`python -m benchmarks.peers`: install the other agents, each into an environment below
`.peers/`.
"""

from __future__ import annotations

import subprocess
import sys
import venv

from benchmarks.peers.agents import OTHERS


def main() -> int:
    """Install what is not there yet; the exit code of the first that fails."""
    for kind in OTHERS:
        if kind.is_installed():
            continue
        print(f"installing {kind.name} into {kind.place}", flush=True)
        venv.create(kind.place, with_pip=True, clear=True)
        argv = [str(kind.place / "bin" / "python"), "-m", "pip", "install", "-q", *kind.wanted]
        if code := subprocess.run(argv, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
