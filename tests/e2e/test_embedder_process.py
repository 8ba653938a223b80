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

from agentd.memory.index.embedding.places import are_installed
from tests.e2e.shell import Shell, a_shell
from tests.embedders.tiny_net import make_net

needs_onnx = pytest.mark.skipif(
    not are_installed("onnx", "tokenizers"), reason="the extra onnx is not installed (EXTRAS=onnx)"
)

PATIENCE = 40.0  # seconds
NUMBERS = count()


def small_net(folder: Path) -> dict[str, str]:
    """What makes a daemon embed with a small net of the user's own."""
    return {
        "AGENTD__MEMORY_SEARCH__PROVIDER": "onnx",
        "AGENTD__MEMORY_SEARCH__EMBEDDER__MODEL": str(make_net(folder) / "model.onnx"),
        "AGENTD__MEMORY_SEARCH__EMBEDDER__DIMENSION": "3",
    }


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A home whose daemon embeds with a small net."""
    with a_shell(**small_net(tmp_path / "tiny")) as shell:
        yield shell


def libraries(pid: int) -> str:
    """The files that a process has mapped."""
    return Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")


def test_a_fresh_installation_finds_what_shares_no_word_with_the_question() -> None:
    variables = {
        "AGENTD__MEMORY_SEARCH__PROVIDER": "auto",
        "AGENTD__MEMORY_SEARCH__EMBEDDER__IDLE": "3s",
    }
    with a_shell(**variables) as shell:
        shell.ok("up", given="remember that Anna has adopted a puppy\n")
        pid = shell.json("status")["pid"]
        until(lambda: searched(shell)["reason"] == "")
        status = shell.json("status")
        assert status["index"]["provider"] == "packaged"
        assert status["index"]["why"] == "automatic: the best that is installed"
        assert status["index"]["embedder"].startswith("all-MiniLM-L6-v2-8199be6f699a+")
        assert status["index"]["vectors_missing"] == 0
        found = shell.json("memory", "search", "who got a young dog?")
        assert "puppy" in found["results"][0]["text"]
        (process,) = embedders(pid)
        assert "onnxruntime" in libraries(process)
        if os.access(f"/proc/{pid}/maps", os.R_OK):  # root's alone: the daemon shows it to no other
            daemon = set(libraries(pid).replace("/", " ").split())
            assert not {"onnxruntime", "torch", "tokenizers"} & daemon
        until(lambda: embedders(pid) == [])  # it was idle
        again = shell.json("memory", "search", "a new pet in the family")
        assert "puppy" in again["results"][0]["text"]


@needs_onnx
def test_the_word_table_goes_on_where_the_process_cannot_run(tmp_path: Path) -> None:
    variables = small_net(tmp_path / "tiny")
    (tmp_path / "tiny" / "model.onnx").write_bytes(b"damaged")
    with a_shell(**variables) as shell:
        shell.ok("up", given="remember that Anna has adopted a puppy\n")
        found = until(lambda: (it := searched(shell))["reason"] == "embedder_down" and it)
        assert found["results"]
        status = shell.json("status")
        assert status["index"]["embedder"].startswith("static-minilm-")
        (problem,) = [it for it in status["problems"] if it["code"] == "embedder_down"]
        assert "cannot be loaded" in problem["text"]
        assert problem["cure"]
        found = shell.json("memory", "search", "who got a dog?")
        assert any("puppy" in hit["text"] for hit in found["results"])


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


@needs_onnx
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


@needs_onnx
def test_an_embedder_dies_with_a_daemon_that_is_killed(shell: Shell) -> None:
    shell.ok("up", given="remember that the cat sleeps in the tree house\n")
    pid = shell.json("status")["pid"]
    until(lambda: searched(shell)["results"] and embedders(pid))
    (process,) = embedders(pid)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not Path(f"/proc/{process}").exists())
