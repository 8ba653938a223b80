"""How much disk the core takes. Downloads packages, so only with BENCH_INSTALL=1."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.household import folder
from benchmarks.row import Row

_PROJECT = Path(__file__).parent.parent


async def rows() -> AsyncIterator[Row]:
    """`du` of site-packages without any extra."""
    if os.environ.get("BENCH_INSTALL") != "1":
        return
    with folder() as place:
        venv.create(place, with_pip=False)
        python = str(place / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", str(_PROJECT)]
        subprocess.run(pip, check=True)
        told = subprocess.run(["du", "-sm", place], check=True, capture_output=True, text=True)
        yield Row("install of the core", [float(told.stdout.split()[0])], "MB", below=300)
