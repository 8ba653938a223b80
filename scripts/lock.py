"""The locks of the released set: what `make run` installs, by version and hash.

    python scripts/lock.py         writes one file for each Python of PYTHONS, with uv
    python scripts/lock.py --name  prints the file for this Python and platform, nothing if there is none

A lock names packages, versions and hashes, and no place to get them from: that is pip's setting.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORM, TAG = "linux-x86_64", "x86_64-manylinux_2_28"  # as we name it, and as uv does


def wanted() -> list[str]:
    """What a lock must satisfy: the dependencies of the core, and what builds it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return sorted([*project["project"]["dependencies"], *project["build-system"]["requires"]])


def head() -> str:
    """The first line of a lock: what it was made for."""
    digest = hashlib.sha256("\n".join(wanted()).encode()).hexdigest()[:16]
    return f"# Written by `make lock` for the dependencies {digest}."


def path_of(python: str) -> Path:
    """The lock for this minor version of Python."""
    return FOLDER / f"{PLATFORM}-py{python}.txt"


def here() -> Path | None:
    """The lock that fits the Python and the platform that run this."""
    python = "{}.{}".format(*sys.version_info[:2])
    is_ours = (
        sysconfig.get_platform() == PLATFORM
        and platform.libc_ver()[0] == "glibc"
        and platform.python_implementation() == "CPython"
    )
    path = path_of(python)
    return path if is_ours and path.is_file() else None


def write(python: str) -> None:
    """Resolve for this Python. Raises CalledProcessError."""
    argv = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-config", "-"]
    argv += ["--generate-hashes", "--no-header", "--no-annotate", "--only-binary", ":all:"]
    argv += ["--python-version", python, "--python-platform", TAG]
    text = "\n".join(wanted())
    made = subprocess.run(argv, input=text, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    FOLDER.mkdir(exist_ok=True)
    path_of(python).write_text(f"{head()}\n{made.stdout}", encoding="utf-8")


def main() -> None:
    """Do what the command line says."""
    if sys.argv[1:] == ["--name"]:
        if (path := here()) is not None:
            print(path.relative_to(ROOT))
        return
    for python in PYTHONS:
        write(python)
        print(path_of(python).relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
