"""What was typed in chats is erased, all of it or what is too old."""

from __future__ import annotations

import asyncio
import resource
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

import pytest
from prompt_toolkit.history import FileHistory

from agentd.app.chat.terminal import InputHistory
from agentd.core.erasure import MASK, Erasure, PlacedWords
from agentd.core.errors import StorageError
from agentd.core.turn import SessionKey
from agentd.storage.chat_history import TypedHistory
from agentd.testing import FakeClock

LONG_AGO = "\n# 2024-05-01 10:00:00.000001\n+zitronenfalter\n+second line\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "chat_history"


BIRD = SessionKey("chat:bird")


async def test_what_names_no_session_goes_with_any_and_what_names_another_stays(path):
    words = TypedHistory(path)
    await words.erase(BIRD)
    await words.erase_before(datetime.now(UTC))
    path.write_text(LONG_AGO)
    await words.erase(BIRD)
    assert not path.exists()
    other = "\n# 2026-05-01 10:00:00.000002+00:00 chat:bird 2\n+amsel\n"
    path.write_text(f"{LONG_AGO}{other}\n# 2026-05-01 10:00:00.000003+00:00 chat:bird\n+star\n")
    await words.erase(BIRD)
    assert path.read_text() == other
    before = path.stat().st_ino
    await words.erase(BIRD)
    assert path.stat().st_ino == before


async def test_what_is_too_old_goes_and_what_a_chat_typed_since_stays(path):
    path.write_text(LONG_AGO)
    FileHistory(str(path)).store_string("amsel")
    words = TypedHistory(path)
    now = datetime.now(UTC)
    await words.erase_before(now - timedelta(days=36_000))
    assert "zitronenfalter" in path.read_text()
    await words.erase_before(now - timedelta(days=30))
    assert list(FileHistory(str(path)).load_history_strings()) == ["amsel"]
    assert "zitronenfalter" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    await words.erase_before(now + timedelta(days=1))
    assert path.read_bytes() == b""


async def test_a_file_that_is_no_history_is_left_alone(path):
    path.write_text("# a heading\nwords\n")
    await TypedHistory(path).erase_before(datetime.now(UTC))
    assert path.read_text() == "# a heading\nwords\n"


async def test_what_cannot_be_erased_is_told_with_its_cure(path):
    path.mkdir()
    for attempt in (
        TypedHistory(path).erase(BIRD),
        TypedHistory(path).erase_before(datetime.now(UTC)),
    ):
        with pytest.raises(StorageError) as refused:
            await attempt
        assert str(path) in refused.value.cure


async def test_words_are_masked_and_the_rest_stays(path):
    history = FileHistory(str(path))
    for text in ("amsel", "one\nmy dog is\nREX, yes", "my dog is Rex", "Rex", "drossel"):
        history.store_string(text)
    words = TypedHistory(path)
    erasure = Erasure(spans=("my dog is Rex",))
    assert await words.erase_words(erasure) == 2
    kept = ["drossel", "Rex", MASK, f"one\n{MASK}, yes", "amsel"]
    assert list(FileHistory(str(path)).load_history_strings()) == kept
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes(), path.stat().st_ino
    assert await words.erase_words(erasure) == 0
    assert (path.read_bytes(), path.stat().st_ino) == before


async def test_a_mark_counts_in_one_entry(path):
    path.write_text(
        "\n# 2026-05-01 10:00:00.000001\n+tea and tea\n\n# 2026-05-01 10:00:00.000002\n+tea\n"
    )
    words = TypedHistory(path)
    [texts] = [texts async for texts in words.texts()]
    assert [(one.text, one.by_user) for one in texts] == [("tea and tea", True), ("tea", True)]
    assert texts[0].at is not None
    mark = PlacedWords(texts[0].where, "tea", 8)
    assert await words.erase_words(Erasure(marks=(mark,))) == 1
    kept = ["tea", f"tea and {MASK}"]
    assert list(FileHistory(str(path)).load_history_strings()) == kept


async def test_where_nothing_was_typed_no_word_is_erased(path):
    erasure = Erasure(spans=("Rex",))
    assert await TypedHistory(path).erase_words(erasure) == 0
    path.mkdir()
    with pytest.raises(StorageError):
        await TypedHistory(path).erase_words(erasure)


async def test_what_cannot_be_erased_for_want_of_room_is_copied_nowhere(path):
    path.write_text(f"{LONG_AGO}\n# 2026-05-01 10:00:00.000003+00:00 chat:bird\n+{'star ' * 99}\n")
    before = path.read_bytes()
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, usual[1]))
    try:
        for attempt in (
            TypedHistory(path).erase(SessionKey("chat:other")),
            TypedHistory(path).erase_words(Erasure(spans=("star",))),
        ):
            with pytest.raises(StorageError, match="cannot be erased"):
                await attempt
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == before


async def test_what_a_crash_has_left_of_a_change_goes_with_the_next_deletion(path):
    part = path.with_name(f"{path.name}.part")
    part.write_text(LONG_AGO)
    await TypedHistory(path).erase(BIRD)
    assert not part.exists()


async def test_a_chat_loses_nothing_that_is_typed_while_words_are_erased(path: Path):
    done = Event()

    def chat() -> int:
        history, count = InputHistory(path, FakeClock()), 0
        history.session = "chat:bird"
        while not done.is_set():
            history.store_string(f"amsel {count}")
            count += 1
        return count

    writing = asyncio.create_task(asyncio.to_thread(chat))
    words = TypedHistory(path)
    while len(list(FileHistory(str(path)).load_history_strings())) < 10:
        await asyncio.sleep(0)
    for number in range(30):
        other = InputHistory(path, FakeClock())
        other.session = f"chat:{number}"
        await asyncio.to_thread(other.store_string, "star")
        await words.erase(SessionKey(f"chat:{number}"))
    done.set()
    count = await writing
    kept = list(FileHistory(str(path)).load_history_strings())
    assert kept == [f"amsel {number}" for number in reversed(range(count))]


async def test_what_was_typed_while_the_clock_was_ahead_keeps_nothing_else(path):
    at = "\n# {}-01-01 10:00:00.000001+00:00 chat:a\n+word {}\n"
    years = (2090, 2024, 2090, 2023, 2089)
    path.write_text("".join(at.format(year, n) for n, year in enumerate(years)))
    await TypedHistory(path).erase_before(datetime(2026, 1, 1, tzinfo=UTC))
    left = list(FileHistory(str(path)).load_history_strings())
    assert left == ["word 4", "word 2", "word 0"]
