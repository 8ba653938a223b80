"""The locks are in step with pyproject.toml, and name packages and hashes alone."""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PINNED = re.compile(r"([a-z0-9.-]+)==([^\s;]+)(?: ; [^\\]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")


def load(name: str = "lock") -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


lock = load()
PATHS = [lock.path_of(python) for python in lock.PYTHONS]


def pins(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {match[1]: match[2] for line in lines if (match := PINNED.fullmatch(line))}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_lock_was_made_for_the_dependencies_as_they_are(path: Path) -> None:
    first = path.read_text(encoding="utf-8").split("\n", 1)[0]
    assert first == lock.head(), "run `make lock`"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_lock_holds_every_dependency_in_a_version_that_is_allowed(path: Path) -> None:
    pinned = pins(path)
    for text in lock.wanted():
        wanted = Requirement(text)
        version = pinned.get(canonicalize_name(wanted.name))
        assert version is not None, f"{wanted} is missing"
        assert wanted.specifier.contains(version, prereleases=True), f"{wanted} is {version}"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_lock_names_packages_and_hashes_and_no_place(path: Path) -> None:
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if not PINNED.fullmatch(line) and not HASH.fullmatch(line)]
    assert odd == []
    assert len(pins(path)) > 30
    for line, after in itertools.pairwise(lines):
        if PINNED.fullmatch(line):
            assert HASH.fullmatch(after), f"{line} has no hash"


def test_a_change_of_a_dependency_asks_for_another_lock(tmp_path: Path) -> None:
    other = load()
    other.ROOT = tmp_path
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(text.replace('"httpx2>=2,<3",', ""), encoding="utf-8")
    assert other.head() != lock.head()


def test_there_is_a_lock_for_each_python_that_is_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={lock.PYTHONS[0]}"
    assert [path for path in PATHS if not path.is_file()] == []
    if sys.platform == "linux" and lock.here() is not None:
        assert lock.here() in PATHS


SOUND = {"name": "idna", "version": "3.11", "vulns": []}
SKIPPED = {"name": "httpx", "skip_reason": "not found"}
FLAWED = {
    "name": "idna",
    "version": "2.0",
    "vulns": [{"id": "PYSEC-2024-60", "fix_versions": ["3.7"]}],
}


def test_an_audit_tells_what_it_found_and_what_nobody_could_tell_it() -> None:
    judged = load("audit").judged
    assert judged({"dependencies": [SOUND]}) == ([], "no vulnerability is known in 1 packages")
    flaws, _ = judged({"dependencies": [SOUND, FLAWED, SKIPPED]})
    assert flaws == ["  idna 2.0: PYSEC-2024-60, fixed in 3.7"]
    flaws, told = judged({"dependencies": [SOUND, SKIPPED]})
    assert flaws == []
    assert told.startswith("warning: nobody knows of advisories for 1 of ")
    flaws, told = judged({"dependencies": [SKIPPED]})
    assert flaws == []
    assert told.startswith("warning: not audited, ")
