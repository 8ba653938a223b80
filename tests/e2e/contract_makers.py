"""What the uses of a command need to be there first, made by asking the daemon."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.e2e.contract import World
from tests.waiting import soon, wait_until


def number(world: World) -> int:
    return next(world.numbers)


def a_place(world: World) -> str:
    """Where nothing is."""
    return str(world.shell.root / f"new{number(world)}.tar.gz")


def a_session(world: World) -> str:
    """A session with two messages."""
    key = f"chat:made{number(world)}"
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello too"}]
    world.wire.call("_agentd/sessions/import", {"key": key, "lines": said})
    return key


def a_changed_note(world: World) -> str:
    """A file of two versions."""
    name = f"tale{number(world)}.md"
    for text in ("once", "twice"):
        world.wire.call("_agentd/memory/write", {"content": text, "target": name, "append": False})
    return name


def a_job(world: World) -> int:
    job: dict[str, Any] = world.wire.call(
        "_agentd/jobs/add", {"text": f"call the dentist, number {number(world)}", "in": "2h"}
    )
    return int(job["id"])


def next_second(world: World) -> None:
    """A test alert names its second, and each second has but one."""
    second = int(time.time())
    wait_until(lambda: int(time.time()) > second, "the second is over")


def an_alert(world: World) -> int:
    """The newest, which `next_second` had made, or a first one."""
    known = world.wire.call("_agentd/alerts/list", {"limit": 1})["alerts"]
    return int((known or [world.wire.call("_agentd/alerts/test")])[0]["id"])


def a_transcript(world: World) -> str:
    """A file to import, in the folder of the home."""
    name = f"talk{number(world)}.jsonl"
    (world.shell.root / name).write_text('{"role": "user", "content": "where is the ferry?"}\n')
    return name


def a_house(world: World) -> str:
    """The folder of another agent."""
    folder = world.shell.root / f"house{number(world)}"
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace" / f"boat{folder.name}.md").write_text("# The boat is called Ida\n")
    return folder.name


def a_backup(world: World) -> str:
    file = a_place(world)
    world.wire.call("_agentd/backup", {"file": file})
    return file


def a_backup_of_its_second(world: World) -> str:
    """What is moved aside is named for the second."""
    next_second(world)
    return a_backup(world)


def a_unit(world: World) -> None:
    """The unit file that is to be taken away."""
    world.shell.ok("service", "install")


def a_fact(world: World) -> str:
    """The id of a fact of its own."""
    name = f"Ferdinand{number(world)}"
    added: dict[str, Any] = world.wire.call(
        "_agentd/facts/add", {"text": f"The badger behind house {name} is shy"}
    )
    return str(added["fact"]["id"])


def two_facts(world: World) -> dict[str, str]:
    """The ids of a fact and of another."""
    return {"one": a_fact(world), "other": a_fact(world)}


def a_changed_fact(world: World) -> str:
    """The id of a fact that has replaced another one."""
    for _ in range(2):
        text = f"my favourite sea is number {number(world)}"
        added: dict[str, Any] = world.wire.call("_agentd/facts/add", {"text": text})
    assert added["superseded"]
    return str(added["fact"]["id"])


def a_change(world: World) -> int:
    """The number of the newest change."""
    a_fact(world)
    return int(world.wire.call("_agentd/facts/changes", {"limit": 1})["changes"][0]["id"])


def a_waiting_fact(world: World) -> str:
    """The id of a fact that the model has read out of a conversation, with no words that say it."""
    name = f"Zenobia{number(world)}"
    key = f"chat:{name}"
    said = [{"role": "user", "content": f"learn The heron at pond {name} is tame."}]
    world.wire.call("_agentd/sessions/import", {"key": key, "lines": said})
    world.wire.call("session/resume", {"sessionId": key, "cwd": "/", "mcpServers": []})
    world.wire.call("session/close", {"sessionId": key})

    def found() -> list[str]:
        facts = world.wire.call("_agentd/facts/pending")["facts"]
        return [str(fact["id"]) for fact in facts if name in fact["text"]]

    (fact_id,) = soon(found)
    return fact_id


def a_picture(world: World) -> str:
    """A file that is not there, in the folder of the home."""
    a_changed_fact(world)
    return f"picture{number(world)}.html"


def a_program(world: World) -> str:
    """A file with a graph that asks for an input."""
    name = f"program{number(world)}.0"
    node = '{ id: "it", type: External, uri: "input://it" }'
    (world.shell.root / name).write_text(f'Graph {{ name: "p", nodes: [{node}], outputs: ["it"] }}')
    return name


def a_file_of_statements(world: World) -> str:
    """A line of words, as `facts compile` reads it."""
    name = f"statements{number(world)}.txt"
    (world.shell.root / name).write_text("Klara | home | Ulm\n")
    return name


def a_file_of_facts(world: World) -> str:
    """As `facts export` writes it."""
    name, at = f"facts{number(world)}.jsonl", "2026-11-01T09:00:00+00:00"
    row = {"text": f"The user's parrot is called {name}", "valid_from": at}
    (world.shell.root / name).write_text(json.dumps(row) + "\n")
    return name


def a_noted_word(world: World) -> str:
    """A word that stands in today's note."""
    word = f"Ottokar{number(world)}"
    world.wire.call("_agentd/memory/write", {"content": f"met {word} at the pier"})
    return word
