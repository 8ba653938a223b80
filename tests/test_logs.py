"""The log is readable by machines and people, and holds no secret."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import shutil
import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from agentd.app.logs import LogSettings, open_log
from agentd.core.erasure import MASK, Erasure
from agentd.core.paths import cure_of
from agentd.testing import FakeClock
from tests.waiting import wait_until

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
SERVICE = {"NOTIFY_SOCKET": "/run/systemd/notify"}

log = structlog.get_logger()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextlib.contextmanager
def records(
    tmp_path: Path, environ: Mapping[str, str] = SERVICE, **settings: Any
) -> Iterator[list[dict[str, Any]]]:
    """What is logged in the block, once it has ended."""
    stream, found = io.StringIO(), []
    with open_log(LogSettings(**settings), tmp_path, FakeClock(), environ, stream):
        yield found
    found.extend(json.loads(line) for line in stream.getvalue().splitlines())


def test_an_event_is_one_json_line_with_time_level_and_fields(tmp_path: Path) -> None:
    with records(tmp_path) as found:
        log.info("flush_done", tokens=12, session="main", note="two\nlines")
    assert found == [
        {
            "event": "flush_done",
            "tokens": 12,
            "session": "main",
            "note": "two\nlines",
            "level": "info",
            "at": "2026-11-21T12:00:00.000+00:00",
        }
    ]


def test_the_level_holds_for_us_and_libraries_never_go_below_warning(tmp_path: Path) -> None:
    noisy = logging.getLogger("httpcore.http11")
    noisy.setLevel(logging.DEBUG)
    try:
        with records(tmp_path, level="debug") as found:
            log.debug("ours")
            noisy.debug("Authorization: Bearer of tidings")
            noisy.warning("a %s", "warning")
    finally:
        noisy.setLevel(logging.NOTSET)
    assert [(r["event"], r["level"]) for r in found] == [
        ("ours", "debug"),
        ("a warning", "warning"),
    ]
    with records(tmp_path, level="error") as found:
        log.warning("too quiet")
        log.error("loud")
    assert [r["event"] for r in found] == ["loud"]


def test_an_exception_is_logged_without_secrets_and_without_the_values_of_variables(
    tmp_path: Path,
) -> None:
    with records(tmp_path) as found:
        local_variable = "what the user said"
        try:
            msg = f"refused key={KEY}"
            raise ValueError(msg)
        except ValueError:
            log.exception("call_failed")
    (record,) = found
    assert "ValueError: refused key=[secret]" in record["exception"]
    assert "test_logs.py" in record["exception"]
    assert KEY not in json.dumps(record)
    assert local_variable not in json.dumps(record)


def test_a_librarys_exception_is_redacted_too(tmp_path: Path) -> None:
    with records(tmp_path) as found:
        try:
            raise RuntimeError(KEY)
        except RuntimeError:
            logging.getLogger("library").exception("header was %r", {"x-api-key": KEY})
    assert "Traceback" in found[0]["exception"]
    assert KEY not in json.dumps(found)


def test_secrets_are_hidden_at_any_depth_and_in_objects(tmp_path: Path) -> None:
    class Settings:
        def __repr__(self) -> str:
            return f"Settings(key={KEY!r})"

    with records(tmp_path, {**SERVICE, "MY_API_KEY": "plain looking"}) as found:
        log.info(
            "x", a=[{"b": (KEY,)}], c=Settings(), d={"api_key": "short"}, e="plain looking", n=1
        )
    (record,) = found
    assert record["a"] == [{"b": ["[secret]"]}]
    assert record["c"] == "Settings(key='[secret]')"
    assert record["d"] == {"api_key": "[secret]"}
    assert record["e"] == "[secret]"
    assert record["n"] == 1


def test_a_secret_that_is_learnt_later_is_hidden_from_then_on(tmp_path: Path) -> None:
    stream = io.StringIO()
    with open_log(LogSettings(), tmp_path, FakeClock(), SERVICE, stream) as opened:
        opened.redactor.add("from a credential")
        log.info("x", text="it came from a credential!")
    assert "it came [secret]!" in stream.getvalue()


def test_the_journal_gets_priorities_when_it_is_really_there(tmp_path: Path) -> None:
    ours, journal = socket.socketpair()
    with ours, journal, ours.makefile("w") as stream:
        status = os.fstat(ours.fileno())
        environ = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        with open_log(LogSettings(), tmp_path, FakeClock(), environ, stream):
            log.error("bad", text="a\nb")
            log.info("good")
        lines = journal.recv(65536).decode().splitlines()
    assert [line[:4] for line in lines] == ["<3>{", "<6>{"]
    assert json.loads(lines[0][3:])["text"] == "a\nb"


def test_an_inherited_journal_variable_alone_proves_nothing(tmp_path: Path) -> None:
    with records(tmp_path, {"JOURNAL_STREAM": "8:1234"}) as found:
        log.info("to the file")
    assert found == []
    assert "to the file" in (tmp_path / "logs" / "agentd.log").read_text()


def test_a_terminal_gets_readable_lines(tmp_path: Path) -> None:
    stream = Terminal()
    with open_log(LogSettings(), tmp_path, FakeClock(), {}, stream):
        log.info("ready", pid=7)
    assert "ready" in stream.getvalue()
    assert not stream.getvalue().startswith("{")
    assert not (tmp_path / "logs").exists()


def test_the_open_log_says_where_it_goes(tmp_path: Path) -> None:
    with open_log(LogSettings(), tmp_path, FakeClock(), {}, io.StringIO()) as opened:
        assert (opened.file, opened.is_journal) == (tmp_path / "logs" / "agentd.log", False)
    with open_log(LogSettings(), tmp_path, FakeClock(), {}, Terminal()) as opened:
        assert (opened.file, opened.is_journal) == (None, False)


def test_the_level_can_change_while_the_log_is_open(tmp_path: Path) -> None:
    stream = io.StringIO()
    with open_log(LogSettings(), tmp_path, FakeClock(), SERVICE, stream) as opened:
        log.debug("before")
        opened.set_level("debug")
        log.debug("meanwhile")
        opened.set_level("error")
        log.warning("afterwards")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["meanwhile"]


def test_the_file_is_private_and_rotates(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with records(tmp_path, {}, max_bytes=10_000, keep=2):
            for number in range(200):
                log.info("fill", number=number, text="x" * 200)
    finally:
        os.umask(before)
    files = sorted((tmp_path / "logs").iterdir())
    assert [file.name for file in files] == ["agentd.log", "agentd.log.1", "agentd.log.2"]
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.stat().st_size <= 10_000
    assert '"number": 199' in files[0].read_text()
    assert stat.S_IMODE((tmp_path / "logs").stat().st_mode) == 0o700


def test_the_file_may_be_elsewhere(tmp_path: Path) -> None:
    place = tmp_path / "else" / "where.log"
    with records(tmp_path, {}, file=str(place)):
        log.info("here")
    assert "here" in place.read_text()


def test_a_pipe_in_its_place_that_nobody_reads_is_told(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    os.mkfifo(tmp_path / "logs" / "agentd.log")
    with pytest.raises(OSError, match=r"agentd\.log") as told, records(tmp_path, {}):
        pass
    assert "move it away" in cure_of(told.value)


def test_a_file_that_is_removed_or_moved_while_it_is_open_is_made_anew(tmp_path: Path) -> None:
    file, aside = tmp_path / "logs" / "agentd.log", tmp_path / "aside.log"
    with open_log(LogSettings(), tmp_path, FakeClock(), {}, io.StringIO()) as opened:
        log.info("first")
        wait_until(lambda: "first" in file.read_text(), "a line in the file")
        file.rename(aside)
        log.info("second")
        wait_until(file.is_file, "a file in the place of the one that was moved")
        shutil.rmtree(file.parent)
        assert opened.erase(Erasure(spans=("Renée",))) == 0
        shutil.rmtree(file.parent)
        log.info("third")
    assert "second" not in aside.read_text()
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["third"]
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_closing_the_log_leaves_nothing_behind(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers)
    with records(tmp_path):
        pass
    assert logging.getLogger().handlers == before
    assert not structlog.is_configured()


def test_a_forgotten_word_is_masked_in_all_parts_of_the_file_while_it_is_written(
    tmp_path: Path,
) -> None:
    words, settings = Erasure(spans=("Renée",)), LogSettings(max_bytes=10_000, keep=9)
    folder = tmp_path / "logs"
    with open_log(settings, tmp_path, FakeClock(), {}, io.StringIO()):
        (folder / "agentd.log.9").write_text("no json of Renée. Fine.\n")
        for number in range(100):
            log.info(
                "said", number=number, text="Yes. RENÉE. No." if number % 40 == 3 else "x" * 200
            )
    with open_log(settings, tmp_path, FakeClock(), {}, io.StringIO()) as opened:
        assert opened.erase(words) == 4
        log.info("after")
    assert opened.file == folder / "agentd.log"
    parts = sorted(folder.iterdir())
    assert len(parts) > 3
    text = "".join(part.read_text() for part in parts)
    assert "ren" not in text.casefold()
    assert text.count(MASK) == 4
    assert f'"text": "Yes. {MASK}. No."' in text
    assert f"{MASK}. Fine.\n" in text
    assert json.loads(opened.file.read_text().splitlines()[-1])["event"] == "after"
    assert all(stat.S_IMODE(part.stat().st_mode) == 0o600 for part in parts)


def test_where_no_file_is_written_nothing_is_masked(tmp_path: Path) -> None:
    with open_log(LogSettings(), tmp_path, FakeClock(), SERVICE, io.StringIO()) as opened:
        assert opened.erase(Erasure(spans=("said",))) == 0
