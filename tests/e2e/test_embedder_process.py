"""A model in a process of its own, as the daemon's user sees it: used, killed, replaced, gone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.shell import Shell, a_shell
from tests.embedders.tiny_net import make_net

for package in ("onnx", "onnxruntime", "tokenizers"):
    pytest.importorskip(package, reason="the extra onnx is not installed (EXTRAS=onnx)")

PATIENCE = 40.0  # seconds
NUMBERS = count()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A home whose daemon embeds with a small net."""
    variables = {
        "AGENTD__MEMORY_SEARCH__PROVIDER": "onnx",
        "AGENTD__MEMORY_SEARCH__EMBEDDER__MODEL": str(make_net(tmp_path / "tiny") / "model.onnx"),
        "AGENTD__MEMORY_SEARCH__EMBEDDER__DIMENSION": "3",
    }
    with a_shell(**variables) as shell:
        yield shell


def embedders(parent: int) -> list[int]:
    """The embedder processes of a daemon."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            name, fields = place.joinpath("stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue
        if name == "agentd-embedder" and int(fields.split()[1]) == parent:
            found.append(int(place.name))
    return found


def until(ask: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (answer := ask()):
        assert time.monotonic() < end, "it never came"
    return answer


def searched(shell: Shell) -> dict[str, Any]:
    """The answer to a question that was not asked before: the vectors of those are kept."""
    return shell.json("memory", "search", f"the dog in the tree {next(NUMBERS)}")


def test_search_goes_on_whatever_happens_to_the_process(shell: Shell) -> None:
    shell.ok("up", given="remember that the cat sleeps in the tree house\n")
    until(lambda: searched(shell)["reason"] == "")
    status = shell.json("status")
    assert status["index"]["provider"] == "onnx"
    assert status["index"]["why"] == "configured"
    assert status["index"]["embedder"].startswith("model-3-")
    (process,) = embedders(status["pid"])
    os.kill(process, signal.SIGKILL)
    found = searched(shell)
    assert any("cat sleeps" in hit["text"] for hit in found["results"])
    until(lambda: searched(shell)["reason"] == "")
    (other,) = embedders(status["pid"])
    assert other != process
    shell.ok("stop")
    assert until(lambda: not Path(f"/proc/{other}").exists())


def test_an_embedder_dies_with_a_daemon_that_is_killed(shell: Shell) -> None:
    shell.ok("up", given="remember that the cat sleeps in the tree house\n")
    pid = shell.json("status")["pid"]
    until(lambda: searched(shell)["results"] and embedders(pid))
    (process,) = embedders(pid)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not Path(f"/proc/{process}").exists())
