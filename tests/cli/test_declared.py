"""Declared commands as a command line has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from agentd.app.cli.declared import group_of, tell
from agentd.app.cli.group import CommandGroup, DeferredCommand, Load
from tests.commands.declared_tea import TEA
from tests.scripted_daemon import ScriptedDaemon

runner = CliRunner()


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedDaemon]:
    monkeypatch.setenv("AGENTD_HOME", str(tmp_path / "home"))
    with ScriptedDaemon(tmp_path / "home" / "agentd.sock") as daemon:
        daemon.on("_agentd/tea/brew", lambda params, wire: {"kind": params["kind"]})
        yield daemon


def outer(**later: Load) -> CommandGroup:
    named = {name: DeferredCommand(load, "") for name, load in later.items()}
    group = CommandGroup("All of them.", named)
    group.callback()(lambda: None)
    return group


def run(group: CommandGroup, *argv: str) -> tuple[int, str]:
    done = runner.invoke(outer(tea=lambda: group), ["tea", *argv])
    return done.exit_code, done.output


def test_what_is_typed_is_sent_under_the_keys_of_the_wire(daemon: ScriptedDaemon) -> None:
    argv = ("brew", "mint", "--cups", "3", "--in", "2h", "--also", "a", "--also", "b", "--milk")
    argv += ("--spoons", "1", "--spoons", "2")
    assert run(group_of(TEA), *argv, "--lot", "17", "--json") == (0, '{"kind": "mint"}\n')
    (sent,) = daemon.params_of("_agentd/tea/brew")
    also = ["a", "b"]
    assert sent == {
        "kind": "mint",
        "cups": 3,
        "in": "2h",
        "also": also,
        "milk": True,
        "lot": 17,
        "spoons": [1, 2],
        "size": "small",
    }


def test_what_is_not_given_is_left_to_the_method_unless_the_line_has_a_default_of_its_own(
    daemon: ScriptedDaemon,
) -> None:
    assert run(group_of(TEA), "brew", "mint", "--lot", "1b") == (0, "kind  mint\n")
    (sent,) = daemon.params_of("_agentd/tea/brew")
    assert sent == {"kind": "mint", "cups": 2, "milk": False, "lot": "1b", "size": "small"}


@pytest.mark.parametrize(
    "argv",
    [
        ("brew",),
        ("brew", "mint", "--cups", "10"),
        ("brew", "mint", "--no-milk"),
        ("brew", "mint", "--silently"),
        ("brew", "mint", "--size", "vast"),
        ("follow",),
    ],
    ids=" ".join,
)
def test_what_is_not_declared_is_a_mistake_of_usage(argv: tuple[str, ...]) -> None:
    assert run(group_of(TEA), *argv)[0] == 2


def test_a_line_of_its_own_gets_what_is_declared_and_adds_options(daemon: ScriptedDaemon) -> None:
    seen: list[Any] = []
    (brew, _) = TEA.commands

    def line(
        given: dict[str, Any],
        *,
        again: Annotated[bool, typer.Option("--again", help="Twice.")] = False,
        as_json: bool,
    ) -> None:
        seen.append((given["kind"], again))
        tell(brew, given, as_json=as_json)

    group = group_of(TEA, {"brew": line})
    assert run(group, "brew", "mint", "--again") == (0, "kind  mint\n")
    assert seen == [("mint", True)]
    assert "--again" in run(group, "brew", "--help")[1]


def test_a_group_is_loaded_only_when_it_is_named() -> None:
    loaded: list[str] = []

    def load(name: str) -> CommandGroup:
        loaded.append(name)
        return group_of(TEA)

    everything = outer(tea=lambda: load("tea"), other=lambda: load("other"))
    assert runner.invoke(everything, ["tea", "--help"]).exit_code == 0
    assert loaded == ["tea"]
    assert "other" in runner.invoke(everything, ["--help"]).output


def test_help_of_a_command_is_its_docstring() -> None:
    code, text = run(group_of(TEA), "brew", "--help")
    assert code == 0
    assert "Make tea." in text
    assert "default: 2" in text
    assert "How large: small or large." in text
