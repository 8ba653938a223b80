"""A home that an earlier version has left: every fact is there, with the words that say it."""

from __future__ import annotations

from agentd.core.fact import FactStatus
from agentd.core.turn import MAIN, SessionKey
from agentd.memory.facts.known import Digests
from agentd.storage.migrations import STATE, Schema
from agentd.storage.sqlite import Database
from tests.memory.facts.talks import Talk

_STEP = next(step for step in STATE.steps if "CREATE TABLE fact_evidence" in step)
BEFORE = Schema("state", STATE.application_id, STATE.steps[: STATE.steps.index(_STEP)])
AT = "2026-11-21T12:01:00.000000+00:00"
PAGE = """# Facts

- The user's dog is called Rex. <!-- fact id=aaaaaaaa category=personal source=extracted \
confidence=0.6 since=2026-11-21T12:01:00Z noted=2026-11-21T12:01:00Z from=main#1 \
triple="user|dog name|Rex" -->
- The user likes tea. <!-- fact id=bbbbbbbb category=preference source=explicit confidence=0.9 \
since=2026-11-21T12:01:00Z noted=2026-11-21T12:01:00Z -->

My own line.

## Earlier

- The user plays the flute. <!-- fact id=cccccccc category=personal source=extracted \
confidence=0.6 since=2026-11-20T12:01:00Z noted=2026-11-20T12:01:00Z until=2026-11-21T12:01:00Z -->

## Forgotten

<!-- forgotten id=dddddddd at=2026-11-21T12:01:00Z -->
"""
_FACTS = (
    ("aaaaaaaa", "The user's dog is called Rex.", "personal", "extracted", 0.6, AT, AT, "active",
     None, "", "main", 1, '["user", "dog name", "Rex"]'),
    ("bbbbbbbb", "The user likes tea.", "preference", "explicit", 0.9, AT, AT, "active",
     None, "", "", 0, None),
    ("cccccccc", "The user plays the flute.", "personal", "extracted", 0.6,
     "2026-11-20T12:01:00.000000+00:00", "2026-11-20T12:01:00.000000+00:00", "superseded", AT, "",
     "", 0, None),
    ("dddddddd", "", "personal", "file", 0.0, AT, AT, "forgotten", AT, "", "", 0, None),
)  # fmt: skip


def _fill(conn) -> None:
    conn.executemany(f"INSERT INTO facts VALUES ({', '.join('?' * 13)})", _FACTS)
    sightings = [
        ("aaaaaaaa", AT, "main", 1),
        ("aaaaaaaa", AT, "chat:gone", 4),
        ("bbbbbbbb", AT, "", 0),
    ]
    conn.executemany(
        "INSERT INTO fact_sightings (fact_id, at, session, seq) VALUES (?, ?, ?, ?)", sightings
    )
    conn.execute("INSERT INTO fact_marks VALUES ('main', 2)")
    tombstone = Digests(b"k" * 32).of("The user's cat is called Tom.")
    conn.execute("INSERT INTO fact_tombstones VALUES (?, ?)", (tombstone, AT))


async def test_every_fact_of_an_earlier_version_is_there_with_the_words_that_say_it(tmp_path):
    async with Database.open(tmp_path / "state.db", BEFORE) as db:
        await db.write(_fill)
    async with Database.open(tmp_path / "state.db", STATE) as db:
        home = Talk(db)
        home.write(PAGE)
        await home.say("Hello! My dog is called Rex, you know. Bye.")
        async with home.running():
            pass
        facts = {fact.id: fact for fact in await home.book.all()}
        assert [fact.status for fact in facts.values()] == [
            FactStatus.ENDED,
            FactStatus.ACTIVE,
            FactStatus.ACTIVE,
            FactStatus.FORGOTTEN,
        ]
        assert (await home.book.parked(), home.book.problems()) == ((), ())
        assert home.forgotten.begun == []
        assert "My own line." in home.page
        await home.check()
        said = {one.session: one for one in await home.evidence("aaaaaaaa")}
        text = (await home.sessions.rows(MAIN))[0].text
        assert text[said[MAIN].start : said[MAIN].end] == "My dog is called Rex, you know."
        assert said[SessionKey("chat:gone")].end == 0
        assert home.provider.prompts == [], "what was read is not read again"
        cat = home.said("The user's cat is called Tom.", at=home.clock.now().replace(minute=0))
        [refused] = await home.learn(cat)
        assert refused.reason == "forgotten"
        renamed = await home.replace("The user's dog is called Bo.", "aaaaaaaa")
        assert [fact.id for fact in renamed.gone] == ["aaaaaaaa"]
        await home.book.undo()
        assert (await home.fact("aaaaaaaa")).is_active
        await home.check()
