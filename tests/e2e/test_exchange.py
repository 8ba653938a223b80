"""Two real daemons: one shares what it knows of somebody and sends it, the other takes it in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentd.zero.formats.seal import seal_lines
from tests.e2e.shell import Shell, a_shell
from tests.finding import holding

SPACES = '["team"]'


@pytest.fixture(scope="module")
def ada() -> Iterator[Shell]:
    """Who knows of Klara and of a dog."""
    with a_shell(AGENTD__GRAPH__SPACES=SPACES) as ada:
        ada.wake()
        for fact in ("my sister is called Klara", "my sister Klara lives in Bern"):
            ada.ok("facts", "add", fact)
        ada.ok("facts", "add", "my dog is called Quastelbury")
        yield ada


@pytest.fixture(scope="module")
def bob() -> Iterator[Shell]:
    """Who knows nothing yet."""
    with a_shell(AGENTD__GRAPH__SPACES=SPACES) as bob:
        bob.wake()
        yield bob


def sent(ada: Shell, *more: str) -> str:
    """The file with a message of Ada's."""
    file = ada.root / f"message{len(list(ada.root.glob('message*')))}.0c"
    ada.ok("facts", "send", "team", "-o", str(file), *more)
    return str(file)


def taken(bob: Shell, file: str) -> list[int]:
    told = bob.json("facts", "take", file, "--from", "Ada", "--trust", "0.5")
    return [told[what] for what in ("new", "known", "taken_back")]


def known(bob: Shell) -> dict[str, float]:
    """What Bob's agent knows from Ada, and how sure it is."""
    rows = bob.json("facts", "query", "FIND fact FROM ada DEPTH 2")["rows"]
    hops = [row["path"][-1] for row in rows]
    return {
        f"{h['subject']} {h['predicate']} {h['object']}": round(h["confidence"], 3) for h in hops
    }


def test_one_shares_and_the_other_finds_it_until_it_is_taken_back(ada: Shell, bob: Shell) -> None:
    ada.ok("facts", "share", "Klara", "--space", "team")
    file = sent(ada)
    assert taken(bob, file) == [2, 0, 0]
    # That she is called Klara was said twice.
    assert known(bob) == {"ada sister_name klara": 0.463, "klara home bern": 0.45}
    shown = bob.ok("facts", "query", "where does Klara live?").out
    assert "klara home bern" in shown.partition("ada says: ")[2]
    assert taken(bob, file) == [0, 2, 0]
    assert "klara" not in bob.ok("facts", "query", "FIND fact FROM user").out
    assert not bob.json("facts", "list")["facts"], "it is no fact of the owner's"

    bob.ok("stop")
    for lost in (bob.root / "state").glob("index.db*"):
        lost.unlink()
    bob.wake()
    # That she is called Klara was said twice.
    assert known(bob) == {"ada sister_name klara": 0.463, "klara home bern": 0.45}

    ada.ok("facts", "forget", "Bern", "--yes")
    back = sent(ada)
    assert taken(bob, back) == [0, 0, 1]
    assert known(bob) == {"ada sister_name klara": 0.463}
    assert taken(bob, sent(ada, "--all")) == [0, 1, 0]
    assert not holding(bob.workspace, b"bern")


def test_where_no_file_can_be_written_nothing_counts_as_sent(ada: Shell) -> None:
    ada.ok("facts", "add", "my sister Klara lives in Ulm")
    ada.ok("facts", "share", "Klara")
    waiting = [fact for fact in ada.json("facts", "share")["facts"] if not fact["sent"]]
    for place in ("nowhere/message.0c", "."):
        assert ada("facts", "send", "team", "-o", place).code == 2
    assert [f for f in ada.json("facts", "share")["facts"] if not f["sent"]] == waiting != []


def test_a_private_fact_never_leaves(ada: Shell, bob: Shell) -> None:
    ada.ok("facts", "share", "Klara")
    text = ada.ok("facts", "send", "team", "--all").out
    assert "klara" in text
    assert "quastelbury" not in text.lower()
    assert "quastelbury" in ada.ok("facts", "snapshot").out, "it is there to be told"


def test_what_others_said_is_forgotten_down_to_the_bytes(ada: Shell, bob: Shell) -> None:
    ada.ok("facts", "share", "Quastelbury")
    file = sent(ada)
    assert taken(bob, file)[0] == 1
    assert holding(bob.root, b"quastelbury")
    bob.ok("memory", "forget", "Quastelbury", "--yes")
    assert "ada dog_name quastelbury" not in known(bob)
    assert not holding(bob.root, b"quastelbury")


def test_bad_messages_change_nothing(ada: Shell, bob: Shell) -> None:
    ada.ok("facts", "share", "Klara")
    good = ada.ok("facts", "send", "team", "--all").out
    before = bob.json("facts", "snapshot")["state"]
    (bob.root / "latin.0c").write_bytes(b"0M:1.0\n\xfc\n")
    with (bob.root / "huge.0c").open("wb") as huge:
        huge.truncate(3 << 20)
    less = good.splitlines()[:-1]
    less.remove(next(line for line in less if line.startswith("R:")))
    altered = good.replace("klara", "clara")
    for text in ("", altered, good[:-9], good.replace("team", "home"), seal_lines(less)):
        done = bob("facts", "take", "-", "--from", "Ada", "--json", given=text)
        assert (done.code, done.json["error"]["code"]) == (1, "graph"), done
        assert done.json["error"]["message"].startswith("-:"), done
    for name, code in (("latin.0c", 1), ("huge.0c", 2), ("nothing.0c", 2), (".", 2)):
        assert bob("facts", "take", name, "--from", "Ada").code == code
    own = ada("facts", "take", "-", "--from", "Ada", "--json", given=good)
    assert "of this agent itself" in own.json["error"]["message"]
    assert bob.json("facts", "snapshot")["state"] == before
    assert bob("facts", "take", "-", "--from", "Ada", given=good).code == 0


def test_a_week_of_changes_makes_the_file_of_now_to_the_letter(ada: Shell) -> None:
    ada.ok("facts", "snapshot", "-o", "monday.0c")
    ada.ok("facts", "add", "my cat is called Mia")
    ada.ok("facts", "graph-changes", "monday.0c", "-o", "week.delta")
    ada.ok("facts", "snapshot", "-o", "now.0c")
    ada.ok("stop")
    ada.ok("facts", "apply", "monday.0c", "week.delta", "-o", "sunday.0c")
    assert (ada.root / "sunday.0c").read_bytes() == (ada.root / "now.0c").read_bytes()
    refused = ada("facts", "apply", "sunday.0c", "week.delta", "-o", "sunday.0c")
    assert refused.code == 1
    assert (ada.root / "sunday.0c").read_bytes() == (ada.root / "now.0c").read_bytes()
    ada.wake()


def test_a_broken_chain_is_named_and_the_chat_goes_on() -> None:
    with a_shell(AGENTD__GRAPH__CHAIN="true") as shell:
        shell.wake()
        shell.ok("facts", "add", "my dog is called Quastelbury")
        # Now, or both facts may come into one entry.
        assert shell.ok("facts", "chain").out == "1 entry, each as it was written\n"
        shell.ok("facts", "add", "my cat is called Mia")
        assert shell.ok("facts", "chain").out == "2 entries, each as it was written\n"
        shell.ok("facts", "forget", "Quastelbury", "--yes")
        assert shell.ok("facts", "chain").out == "3 entries, each as it was written\n"
        assert not holding(shell.root, b"quastelbury")
        log = shell.workspace / "memory" / "graph" / "chain.txt"
        sound = log.read_text()
        log.write_text(sound.replace(" inserted ", " imagined ", 1))
        shell.wake_again()
        broken = shell("facts", "chain")
        assert (broken.code, broken.out[:29]) == (1, "the chain is broken: entry 1:")
        assert [p["code"] for p in shell.json("status")["problems"]] == ["graph_chain"]
        assert "fail graph_chain: " in shell("doctor").out
        assert shell.json("send", "hello")["text"]
        shell.ok("facts", "add", "my horse is called Auguste")
        assert "auguste" in shell.ok("facts", "query", "FIND fact FROM user").out
        shell.ok("facts", "forget", "Mia", "--yes")
        log.write_text(sound)
        shell.ok("facts", "add", "my rabbit is called Otto")
        assert shell.ok("facts", "chain").out == "4 entries, each as it was written\n"
        assert not shell.json("status")["problems"]
