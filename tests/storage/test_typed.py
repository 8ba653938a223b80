"""What was typed in chats is erased, all of it or what is too old."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from prompt_toolkit.history import FileHistory

from agentd.domain.erasure import Needles
from agentd.errors import StorageError
from agentd.storage.typed import TypedWords

LONG_AGO = "\n# 2024-05-01 10:00:00.000001\n+zitronenfalter\n+second line\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "chat_history"


async def test_all_of_it_is_forgotten(path):
    words = TypedWords(path)
    await words.erase()
    await words.erase_before(datetime.now(UTC))
    path.write_text(LONG_AGO)
    await words.erase()
    assert not path.exists()


async def test_what_is_too_old_goes_and_what_a_chat_typed_since_stays(path):
    path.write_text(LONG_AGO)
    FileHistory(str(path)).store_string("amsel")
    words = TypedWords(path)
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
    await TypedWords(path).erase_before(datetime.now(UTC))
    assert path.read_text() == "# a heading\nwords\n"


async def test_what_cannot_be_erased_is_told_with_its_cure(path):
    path.mkdir()
    for attempt in (TypedWords(path).erase(), TypedWords(path).erase_before(datetime.now(UTC))):
        with pytest.raises(StorageError) as refused:
            await attempt
        assert str(path) in refused.value.cure


async def test_lines_that_say_a_forgotten_word_go_and_the_rest_stays(path):
    history = FileHistory(str(path))
    for text in ("amsel", "one\nRex is\nthree", "my dog\nREX", "Rex", "drossel"):
        history.store_string(text)
    words = TypedWords(path)
    assert await words.erase_words(Needles((), (("Rex", ()),))) == 3
    kept = ["drossel", "my dog", "one\nthree", "amsel"]
    assert list(FileHistory(str(path)).load_history_strings()) == kept
    assert b"rex" not in path.read_bytes().lower()
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes(), path.stat().st_ino
    assert await words.erase_words(Needles((), (("Rex", ()),))) == 0
    assert (path.read_bytes(), path.stat().st_ino) == before


async def test_a_sentence_over_two_typed_lines_goes_with_both(path):
    FileHistory(str(path)).store_string("hello\nmy dog is\ncalled Rex")
    words = TypedWords(path)
    assert await words.erase_words(Needles(("my dog is called Rex",))) == 1
    assert list(FileHistory(str(path)).load_history_strings()) == ["hello"]


async def test_where_nothing_was_typed_no_word_is_erased(path):
    assert await TypedWords(path).erase_words(Needles(("Rex",))) == 0
    path.mkdir()
    with pytest.raises(StorageError):
        await TypedWords(path).erase_words(Needles(("Rex",)))
