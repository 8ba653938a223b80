"""The graph as texts for others and from others: whole states, and messages between agents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from agentd.domain.workspace import GRAPH_FOLDER
from agentd.errors import Busy
from agentd.graph.exchange import Exchange, Taken
from agentd.graph.formats.changes import as_json
from agentd.graph.sharing import Sharing, Shown
from agentd.server.methods.params import NoParams, Params, handler
from agentd.server.peer import Handler

NAMES = tuple(
    f"_agentd/facts/{name}"
    for name in (
        "snapshot",
        "graph-changes",
        "share",
        "unshare",
        "send",
        "take",
        "import-graph",
        "export-graph",
        "chain",
    )
)
_PAGE = 256 * 1024  # characters: of four bytes each they fit a line


class SnapshotParams(Params):
    """The part of the text from `after` on, of the state that an earlier part was of."""

    after: int = Field(0, ge=0)
    state: str = ""


class ChangesParams(Params):
    """A state that `snapshot` wrote."""

    old: str


class ShareParams(Params):
    """Whom or what the facts are about that are to be shared, and where; nothing: what is shared."""

    name: str | None = None
    space: str | None = None


class UnshareParams(Params):
    """Whom or what the facts are about that are to be shared no longer, in one space or in all."""

    name: str
    space: str | None = None


class SendParams(Params):
    """For whom the message is; `all` says what earlier ones have said, too."""

    space: str
    all: bool = False


class TakeParams(Params):
    """A message, what its sender is called here, and how far it is trusted."""

    text: str
    sender: str = Field(alias="from")
    trust: float = Field(gt=0, le=1)


class ImportParams(Params):
    """A text of the graph, whose word it is, and how far that is trusted."""

    text: str
    sender: str = Field("", alias="from")
    trust: float = Field(0.5, gt=0, le=1)


class ExchangeMethods:
    """What goes out and comes in, for commands; of a snapshot `page` characters at once."""

    def __init__(self, exchange: Exchange, sharing: Sharing, page: int = _PAGE) -> None:
        self._exchange = exchange
        self._sharing = sharing
        self._page = page

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/facts/snapshot": handler(SnapshotParams, self._snapshot),
            "_agentd/facts/graph-changes": handler(ChangesParams, self._changes),
            "_agentd/facts/share": handler(ShareParams, self._share),
            "_agentd/facts/unshare": handler(UnshareParams, self._unshare),
            "_agentd/facts/send": handler(SendParams, self._send),
            "_agentd/facts/take": handler(TakeParams, self._take),
            "_agentd/facts/import-graph": handler(ImportParams, self._import),
            "_agentd/facts/export-graph": handler(NoParams, self._export),
            "_agentd/facts/chain": handler(NoParams, self._chain),
        }

    async def _snapshot(self, params: SnapshotParams) -> dict[str, Any]:
        """`next` is what to pass as `after` for the next part, None at the end."""
        found = await self._exchange.state()
        held = found.checkpoint
        if params.state and params.state != held.hash.hex:
            raise Busy("the graph changed while it was read", cure="begin again")
        end = params.after + self._page
        return {
            "state": held.hash.hex,
            "concepts": held.concepts,
            "contexts": held.contexts,
            "episodes": held.relations,
            "text": found.text[params.after : end],
            "next": end if end < len(found.text) else None,
        }

    async def _changes(self, params: ChangesParams) -> dict[str, Any]:
        return as_json(await self._exchange.since(params.old))

    async def _share(self, params: ShareParams) -> dict[str, Any]:
        await self._exchange.fresh()
        if params.name is None:
            shown = await self._sharing.shown()
            return _listed(one for one in shown if params.space in {None, one.space})
        return _listed(await self._sharing.share(params.name, params.space))

    async def _unshare(self, params: UnshareParams) -> dict[str, Any]:
        await self._exchange.fresh()
        return _listed(await self._sharing.unshare(params.name, params.space))

    async def _send(self, params: SendParams) -> dict[str, Any]:
        await self._exchange.fresh()
        sent = await self._sharing.send(params.space, whole=params.all)
        return {"text": sent.text, "facts": sent.facts, "taken_back": sent.withdrawn}

    async def _take(self, params: TakeParams) -> dict[str, Any]:
        return _taken(await self._exchange.take(params.text, params.sender, params.trust))

    async def _import(self, params: ImportParams) -> dict[str, Any]:
        done = await self._exchange.take_text(params.text, params.sender, params.trust)
        return _taken(done)

    async def _export(self, _: NoParams) -> dict[str, Any]:
        done = await self._exchange.export()
        return {"folder": GRAPH_FOLDER, "files": done.files, "episodes": done.episodes}

    async def _chain(self, _: NoParams) -> dict[str, Any]:
        found = await self._exchange.logged()
        return {
            "kept": self._exchange.is_logged,
            "entries": found.verdict.entries,
            "bad": found.verdict.bad,
            "why": found.verdict.why,
            "changed": list(found.changed),
        }


def _listed(shown: Iterable[Shown]) -> dict[str, Any]:
    return {
        "facts": [
            {"space": one.space, "id": one.fact.id, "text": one.fact.text, "sent": one.is_sent}
            for one in shown
        ]
    }


def _taken(done: Taken) -> dict[str, Any]:
    return {
        "new": done.new,
        "known": done.known,
        "taken_back": done.withdrawn,
        "kept_out": done.kept_out,
    }
