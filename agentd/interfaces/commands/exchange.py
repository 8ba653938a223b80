"""`facts`, exchange with other agents and with programs: texts of the graph going out and coming in
(whole snapshots, and messages between agents), and the states that programs of the `.0` language
keep between runs, for `agentd facts run --state`.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

from agentd.core.errors import Busy
from agentd.core.workspace import GRAPH_FOLDER
from agentd.interfaces.commands.declaration import MODEL_SECONDS, Group, Param
from agentd.interfaces.commands.plain import counted, fields, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentd.core.ports import Clock, ProgramStates
    from agentd.memory.graph.graph_exchange import Exchange, IntakeResult
    from agentd.memory.graph.sharing import Sharing, ShownFacts
    from agentd.zero.delta import Delta

PROGRAMS = Group("facts")

MOST = 256 * 1024  # characters of a state: of four bytes each they fit a line

_Name = Annotated[str, Param(length=(1, 80))]


class ProgramCommands:
    """Commands for the states of programs."""

    def __init__(self, states: ProgramStates, clock: Clock) -> None:
        self._states = states
        self._clock = clock

    @PROGRAMS.command(fields, line=False)
    async def program_state(self, name: _Name) -> dict[str, Any]:
        """What is kept under a name, and its hash."""
        state = await self._states.program_state(name)
        return {"name": name, "state": state, "hash": _hash(state)}

    @PROGRAMS.command(fields, line=False)
    async def keep_program_state(
        self, name: _Name, state: Annotated[str, Param(length=(0, MOST))], before: str
    ) -> dict[str, Any]:
        """Keep it, if what was there when the program began, known by its hash, is there still.

        Raises Busy if it has changed meanwhile.
        """
        if before != _hash(await self._states.program_state(name)):
            raise Busy("another run has changed the state meanwhile", cure="run it again")
        await self._states.keep_program_state(name, state, self._clock.now())
        return {"name": name, "hash": _hash(state)}


def _hash(state: str) -> str:
    return sha256(state.encode()).hexdigest()


EXCHANGE = Group("facts")

_PAGE = 256 * 1024  # characters: of four bytes each they fit a line

_Space = Annotated[str | None, Param("One of `[graph] spaces`.", ("--space",))]


def _shared_text(told: dict[str, Any]) -> str:
    lines = [
        (
            f"{one['space']}  {one['id']}  "
            f"{visible(one['text'])}{'' if one['sent'] else '  (not sent)'}"
        )
        for one in told["facts"]
    ]
    return "\n".join(lines) or "nothing is shared"


def _ended_text(told: dict[str, Any]) -> str:
    return "\n".join(
        f"{one['space']}  {one['id']}  no longer: {visible(one['text'])}" for one in told["facts"]
    )


def _exported_text(told: dict[str, Any]) -> str:
    files = counted(told["files"], "file")
    return f"{counted(told['episodes'], 'episode')} in {files} of {told['folder']}"


def _verified_text(found: dict[str, Any]) -> str:
    if not found["kept"]:
        return "no chain is kept; `chain = true` in the [graph] table of config.toml begins one"
    if found["bad"] is not None:
        what = f"entry {found['bad']}" if found["bad"] else "the head record"
        return f"the chain is broken: {what}: {found['why']}"
    lines = [f"{counted(found['entries'], 'entry', 'entries')}, each as it was written"]
    lines += [f"changed since it was entered: what {visible(who)} says" for who in found["changed"]]
    return "\n".join(lines)


class ExchangeCommands:
    """Commands for texts of the graph that go out and come in. A snapshot is sent in pages of
    `page` characters.
    """

    def __init__(
        self,
        exchange: Exchange,
        sharing: Sharing,
        told: Callable[[Delta], dict[str, Any]],
        page: int = _PAGE,
    ) -> None:
        """`told` returns the JSON form of a difference between two states of the graph."""
        self._exchange = exchange
        self._sharing = sharing
        self._told = told
        self._page = page

    @EXCHANGE.command(fields, line=False)
    async def snapshot(
        self, *, after: Annotated[int, Param(least=0)] = 0, state: str = ""
    ) -> dict[str, Any]:
        """The part of the text from `after` on, of the state that an earlier part was of: `next` is
        what to pass as `after` for the next part, None at the end.

        Raises Busy if the graph changed since that earlier part.
        """
        found = await self._exchange.state()
        held = found.checkpoint
        if state and state != held.hash.hex:
            raise Busy("the graph changed while it was read", cure="begin again")
        end = after + self._page
        return {
            "state": held.hash.hex,
            "concepts": held.concepts,
            "contexts": held.contexts,
            "episodes": held.relations,
            "text": found.text[after:end],
            "next": end if end < len(found.text) else None,
        }

    @EXCHANGE.command(fields, line=False)
    async def graph_changes(self, old: str) -> dict[str, Any]:
        """What led to now from a state that `snapshot` told."""
        return self._told(await self._exchange.since(old))

    @EXCHANGE.command(_shared_text)
    async def share(
        self,
        name: Annotated[
            str | None, Param("Whom or what they are about; without, list what is shared.")
        ] = None,
        *,
        space: _Space = None,
    ) -> dict[str, Any]:
        """Share the facts about a name that hold now, in a space; nobody is told before `send`."""
        await self._exchange.fresh()
        if name is None:
            shown = await self._sharing.shown()
            return _facts_json(one for one in shown if space in {None, one.space})
        return _facts_json(await self._sharing.share(name, space))

    @EXCHANGE.command(_ended_text)
    async def unshare(
        self, name: Annotated[str, Param("Whom or what they are about.")], *, space: _Space = None
    ) -> dict[str, Any]:
        """Share the facts about a name no longer; the next message takes them back."""
        await self._exchange.fresh()
        return _facts_json(await self._sharing.unshare(name, space))

    @EXCHANGE.command(fields, seconds=MODEL_SECONDS)
    async def send(
        self,
        space: Annotated[str, Param("One of `[graph] spaces`.")],
        *,
        all: Annotated[bool, Param("Also what earlier messages have said.", ("--all",))] = False,
    ) -> dict[str, Any]:
        """Write a message for those who share a space: what is new since the last one."""
        await self._exchange.fresh()
        sent = await self._sharing.send(space, whole=all)
        return {"text": sent.text, "facts": sent.facts, "taken_back": sent.withdrawn}

    @EXCHANGE.command(fields, seconds=MODEL_SECONDS)
    async def take(
        self,
        text: str,
        *,
        sender: Annotated[str, Param("What its sender is called here.", key="from")],
        trust: Annotated[
            float,
            Param("How far it is trusted: above 0, at most 1.", above=0, up_to=1, usual=0.5),
        ],
    ) -> dict[str, Any]:
        """Take in what another agent tells: all of it that is new, or nothing."""
        return _taken_json(await self._exchange.take(text, sender, trust))

    @EXCHANGE.command(fields, seconds=MODEL_SECONDS)
    async def import_graph(
        self,
        text: str,
        *,
        sender: Annotated[
            str, Param("Whose word it is; without, that of a file.", key="from")
        ] = "",
        trust: Annotated[
            float, Param("How far it is trusted: above 0, at most 1.", above=0, up_to=1)
        ] = 0.5,
    ) -> dict[str, Any]:
        """Take in what a text of the graph says, for yourself alone."""
        return _taken_json(await self._exchange.take_text(text, sender, trust))

    @EXCHANGE.command(_exported_text, seconds=MODEL_SECONDS)
    async def export_graph(self) -> dict[str, Any]:
        """Write the whole graph to memory/graph as `.0` text, one file for each day."""
        done = await self._exchange.export()
        return {"folder": GRAPH_FOLDER, "files": done.files, "episodes": done.episodes}

    @EXCHANGE.command(_verified_text, seconds=MODEL_SECONDS)
    async def chain(self) -> dict[str, Any]:
        """Verify the log of what happened to the graph, and that what others said is what was
        logged.
        """
        found = await self._exchange.logged()
        return {
            "kept": self._exchange.is_logged,
            "entries": found.verdict.entries,
            "bad": found.verdict.bad,
            "why": found.verdict.why,
            "changed": list(found.changed),
        }


def _facts_json(shown: Iterable[ShownFacts]) -> dict[str, Any]:
    return {
        "facts": [
            {"space": one.space, "id": one.fact.id, "text": one.fact.text, "sent": one.is_sent}
            for one in shown
        ]
    }


def _taken_json(done: IntakeResult) -> dict[str, Any]:
    return {
        "new": done.new,
        "known": done.known,
        "taken_back": done.withdrawn,
        "kept_out": done.kept_out,
    }
