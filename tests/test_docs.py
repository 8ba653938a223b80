"""What the pages claim is so: lists equal the code, commands and keys exist, links lead
somewhere.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli
import typer

from agentd import __version__
from agentd.app.cli.app import app
from agentd.app.config import example
from agentd.core import ports
from agentd.core.beat import Reason
from agentd.core.job import JobReason
from agentd.core.search import EmptyReason, SearchShortfall
from agentd.interfaces.acp import frames
from tests import declared

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))
}
PAGE_LINES = 200
PROJECT = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
KEYS = re.compile(r"\[([a-z_.]+)\] ([a-z_]+)\b")


def section(page: str, heading: str) -> str:
    """The text between a heading and the next one of its level."""
    found = re.search(
        rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGES[page], re.MULTILINE | re.DOTALL
    )
    assert found, f"{page} has no section {heading!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        for line in lines[2:]
    ]


def code(text: str) -> list[str]:
    """What stands between single backticks outside of fences."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def fence(page: str, language: str) -> list[str]:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no fence {language!r}"
    return found[1].splitlines()


def commands() -> set[str]:
    def below(command: Any, path: str) -> set[str]:
        inner = getattr(command, "commands", None)
        if inner is None:
            return {path}
        own = {path} if path and command.invoke_without_command else set()
        return own | {name for key in inner for name in below(inner[key], f"{path} {key}".strip())}

    return below(typer.main.get_command(app), "")


def tables() -> dict[str, set[str]]:
    """The keys of each table of the configuration."""
    found: dict[str, set[str]] = {}

    def visit(name: str, table: dict[str, Any]) -> None:
        found[name] = set(table)
        for key, value in table.items():
            if isinstance(value, dict) and f"[{name}.{key}]" in example():
                visit(f"{name}.{key}", value)

    for key, value in tomli.loads(example()).items():
        visit(key, value)
    return found


def test_all_pages_are_there_and_short() -> None:
    assert {"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= PAGES.keys()
    long = {name: n for name, text in PAGES.items() if (n := len(text.splitlines())) >= PAGE_LINES}
    assert not long


def test_the_table_of_packages_lists_every_package_and_says_what_it_says_of_itself() -> None:
    listed = {code(where)[0]: what for where, what in rows(section("ARCHITECTURE.md", "Packages"))}
    packages = {
        f"{path.parent.relative_to(ROOT).as_posix()}/": first_paragraph(path)
        for path in ROOT.glob("agentd/*/**/__init__.py")
    }
    assert len(packages) > 11
    assert listed == packages


def test_the_map_has_a_line_for_every_module() -> None:
    printed = subprocess.run(
        [sys.executable, ROOT / "scripts" / "structure.py", "--map"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    modules = [p for p in ROOT.glob("agentd/**/*.py") if p.name != "__init__.py"]
    assert modules
    missing = [p for p in modules if f"{p.name:24} {first_paragraph(p)}" not in printed]
    assert not missing


def first_paragraph(path: Path) -> str:
    found = re.match(r'r?"""(.+?)(?:"""|\n\n)', path.read_text(encoding="utf-8"), re.DOTALL)
    return " ".join(found[1].split()) if found else ""


def test_hardly_any_two_places_share_six_lines_of_code() -> None:
    """What is there are the ends of schemas, and the call that builds the request of a service."""
    printed = subprocess.run(
        [sys.executable, ROOT / "scripts" / "structure.py", "--repetitions"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert 0 < len(printed.splitlines()) <= 5, printed


def test_the_layers_are_those_that_are_checked() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    assert fence("ARCHITECTURE.md", "layers") == contracts[0]["layers"]


def test_deferred_imports_are_listed_where_their_check_looks() -> None:
    lines = [line.partition("#") for line in fence("ARCHITECTURE.md", "deferred-imports")]
    assert lines
    for listed, _, reason in lines:
        place, *modules = listed.split()
        assert reason.strip(), listed
        assert (ROOT / place).exists(), place
        assert modules
        assert all(re.fullmatch(r"\w+(\.\w+)*", module) for module in modules), place


def test_the_page_of_commands_lists_every_command_and_no_other() -> None:
    listed = {
        " ".join(word for word in code(row[0])[0].split() if re.fullmatch(r"[a-z-]+", word))
        for row in rows(PAGES["docs/command-line.md"])
    }
    assert listed == commands()


@pytest.mark.parametrize("page", sorted(PAGES))
def test_commands_that_a_page_shows_exist(page: str) -> None:
    known = commands()
    groups = {name.split()[0] for name in known}
    for words in re.findall(r"\bagentd ((?:[a-z]+ ?)+)", "\n".join(shown(PAGES[page]))):
        first, *rest = words.split()
        if first in groups and first not in known:
            assert rest, f"{first} is a group"
            assert f"{first} {rest[0]}" in known, words
        else:
            assert first in known, words


def shown(text: str) -> list[str]:
    """Lines of shell fences that are commands, and commands in running text."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [
        *(re.split(r"\s#\s", line)[0] for line in lines if re.match(r"agentd ", line)),
        *(words for words in code(text) if words.startswith("agentd ")),
    ]


def test_the_glossary_explains_every_word_of_a_port() -> None:
    explained = {
        word.removesuffix("s")
        for row in rows_of_all(PAGES["docs/glossary.md"])
        for word in re.findall(r"[a-z]+", " ".join(row).lower())
    }
    plain = {"memory", "search", "stored", "store", "vector"}  # of no meaning of our own
    used = {
        word.lower().removesuffix("s")
        for name in ports.__all__
        for word in re.findall(r"[A-Z][a-z]+", name)
    }
    assert used - plain <= explained


def rows_of_all(text: str) -> list[list[str]]:
    """The cells of every table of a page, heads left out."""
    return [row for part in text.split("\n## ")[1:] for row in rows(part)]


def test_every_table_of_the_configuration_is_explained() -> None:
    listed = {word for row in rows(PAGES["docs/configuration.md"]) for word in code(row[0])}
    assert {f"[{name}]" for name in tables()} <= listed


@pytest.mark.parametrize("page", sorted(PAGES))
def test_keys_that_a_page_names_exist(page: str) -> None:
    known = tables()
    for table, key in KEYS.findall("\n".join(code(PAGES[page]))):
        assert key in known.get(table, set()), f"[{table}] {key}"


@pytest.mark.parametrize("page", sorted(PAGES))
def test_files_that_a_page_names_exist(page: str) -> None:
    tops = "agentd|tests|docs|systemd|benchmarks|workspace_template"
    places = re.compile(rf"(?:{tops})/(?:[\w./@-]*/|[\w/@-]+\.\w+)?")
    for word in code(PAGES[page]):
        if places.fullmatch(word):
            assert list(ROOT.glob(word.rstrip("/"))), word


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if "://" in target:
            continue
        place, _, anchor = target.partition("#")
        path = (ROOT / page).parent / place if place else ROOT / page
        assert path.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


def test_the_readme_leads_to_every_page() -> None:
    assert all(f"]({name})" in PAGES["README.md"] for name in PAGES.keys() - {"README.md"})


def test_the_socket_page_lists_every_method_and_error_code() -> None:
    method = re.compile(r"(?:_agentd|session)/[a-z_-]+(?:/[a-z_-]+)?|initialize|authenticate")
    listed = {word for word in code(PAGES["docs/socket.md"]) if method.fullmatch(word)}
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("interfaces/acp", "interfaces/commands")
        for path in ROOT.glob(f"agentd/{folder}/**/*.py")
    )
    written = {word for word in re.findall(r'"([a-z_/-]+)"', source) if method.fullmatch(word)}
    assert listed == written | {f"_agentd/{command.path}" for command in declared.commands()}
    codes = {str(value) for value in vars(frames).values() if isinstance(value, int) and value < 0}
    assert codes
    assert {word for word in code(PAGES["docs/socket.md"]) if word.startswith("-32")} == codes


def test_the_socket_page_lists_the_params_of_every_declared_command() -> None:
    table = {code(row[0])[0]: row[1] for row in rows(section("docs/socket.md", "Methods of ours"))}
    told = {
        command.path: {f"{one.key}{'' if one.is_needed else '?'}" for one in command.params()}
        for command in declared.commands()
    }
    assert told
    param = re.compile(r"[a-z_]+\??")
    listed = {
        path: {
            word
            for words in code(table[f"_agentd/{path}"])
            for word in words.split(", ")
            if param.fullmatch(word)
        }
        for path in told
    }
    assert listed == told


def test_the_page_on_alerts_explains_every_reason_of_a_beat() -> None:
    listed = [code(row[0]) for row in rows(section("docs/alerts.md", "Why a beat said nothing"))]
    assert sorted(word for words in listed for word in words) == sorted(Reason)


def test_the_page_on_jobs_explains_every_reason_of_a_run() -> None:
    listed = [code(row[0]) for row in rows(section("docs/jobs.md", "Questions"))]
    assert sorted(word for words in listed for word in words) == sorted(JobReason)


def test_the_page_on_retrieval_explains_every_reason_of_a_search() -> None:
    listed = [code(row[0]) for row in rows(section("docs/retrieval.md", "Reasons"))]
    assert sorted(word for words in listed for word in words) == sorted(
        [*EmptyReason, *SearchShortfall]
    )


def test_make_targets_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {name for text in PAGES.values() for name in re.findall(r"`make ([a-z]+)", text)}
    assert {"run", "test", "check"} <= named
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in named)


def test_the_changelog_begins_with_this_version() -> None:
    versions = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", PAGES["CHANGELOG.md"], re.MULTILINE)
    assert versions[0] == __version__ == PROJECT["project"]["version"]


def test_every_benchmark_is_told_of() -> None:
    source = (ROOT / "benchmarks" / "__main__.py").read_text(encoding="utf-8")
    names = re.findall(r'^    "([a-z_]+)": ', source, re.MULTILINE)
    assert names
    assert set(names) <= set(code(PAGES["docs/measuring.md"]))
