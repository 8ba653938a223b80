"""`_agentd/facts/*`: what is known about the owner, in the owner's own hand."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from pydantic import Field

from agentd.domain.fact import Category, ErasureReport, Fact, Learned, Refusal
from agentd.errors import InvalidRequest
from agentd.facts.exchange import Carrier, take_in
from agentd.ports import FactDesk
from agentd.server.methods.params import Params, handler
from agentd.server.peer import Handler

_PAGE = 2_000  # facts in one answer
_CATEGORIES = Literal["personal", "preference", "project", "decision", "instruction", "outcome"]
REFUSED = {
    Refusal.AUTHORITY: "you said otherwise yourself, and that was kept",
    Refusal.EMPTY: "it says nothing",
    Refusal.FORGOTTEN: "you had it forgotten",
    Refusal.CREDENTIAL: "it looks like a secret; keep secrets in a password store",
    Refusal.SUSPICIOUS: "it reads like an instruction to the model",
    Refusal.TOO_LONG: "it is too long for one fact: at most 4,096 characters",
}


class Parked(Protocol):
    """Facts whose lines are gone from the file, many at once."""

    async def parked(self) -> tuple[Fact, ...]:
        """They, as they were."""

    async def accept_parked(self) -> ErasureReport:
        """Forget them."""

    async def restore_parked(self) -> tuple[Fact, ...]:
        """Write their lines again."""


class ListParams(Params):
    """Which facts: by default those that hold now."""

    all: bool = False
    category: _CATEGORIES | None = None
    query: str | None = None
    limit: int = Field(200, ge=1, le=_PAGE)
    offset: int = Field(0, ge=0)


class AddParams(Params):
    """A fact in the owner's words."""

    text: str
    category: _CATEGORIES | None = None


class ForgetParams(Params):
    """Words or an id. `all` erases every fact that says the words."""

    query: str
    all: bool = False


class HistoryParams(Params):
    """A fact by id, or by words that only one fact says."""

    fact: str


class ImportParams(Params):
    """Facts as `facts export` writes them."""

    facts: list[dict[str, Any]] = Field(max_length=_PAGE)


class ParkedParams(Params):
    """What to do with facts whose lines are gone; neither lists them."""

    accept: bool = False
    restore: bool = False


class FactMethods:
    """Facts for commands."""

    def __init__(
        self,
        facts: Carrier,
        desk: FactDesk,
        parked: Parked,
    ) -> None:
        self._facts = facts
        self._desk = desk
        self._parked = parked

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/facts/list": handler(ListParams, self._list),
            "_agentd/facts/add": handler(AddParams, self._add),
            "_agentd/facts/forget": handler(ForgetParams, self._forget),
            "_agentd/facts/history": handler(HistoryParams, self._history),
            "_agentd/facts/import": handler(ImportParams, self._import),
            "_agentd/facts/parked": handler(ParkedParams, self._answer_parked),
        }

    async def _list(self, params: ListParams) -> dict[str, Any]:
        """`total` counts all that match, so that a client can page."""
        if params.query is not None:
            hits = await self._facts.find(params.query, params.limit)
            found = [h.as_json() for h in hits if _is_wanted(h.fact, params)]
            return {"facts": found, "total": len(found)}
        known = [fact for fact in await self._facts.all() if _is_wanted(fact, params)]
        page = known[params.offset : params.offset + params.limit]
        return {"facts": [fact.as_json() for fact in page], "total": len(known)}

    async def _add(self, params: AddParams) -> dict[str, Any]:
        category = None if params.category is None else Category(params.category)
        return _learned(await self._desk.remember(params.text, category=category))

    async def _forget(self, params: ForgetParams) -> dict[str, Any]:
        """With several facts that may be meant, nothing is done: `candidates` lists them."""
        matches = await self._desk.matching(params.query)
        if len(matches.sure) == 1 or (matches.sure and params.all):
            report = await self._desk.forget([fact.id for fact in matches.sure])
            forgotten = [fact.id for fact in matches.sure]
            return {"forgotten": forgotten, "candidates": [], **report.as_json()}
        found = matches.sure or matches.maybe
        nothing = ErasureReport({})
        candidates = [fact.as_json() for fact in found]
        return {"forgotten": [], "candidates": candidates, **nothing.as_json()}

    async def _history(self, params: HistoryParams) -> dict[str, Any]:
        fact_id = params.fact
        if not any(fact.id == fact_id for fact in await self._facts.all()):
            matches = await self._desk.matching(params.fact)
            if len(matches.sure) != 1:
                raise InvalidRequest(
                    f"fact: {len(matches.sure)} facts say that"
                    if matches.sure
                    else "fact: none says that",
                    cure="give an id from `agentd facts list --all`",
                )
            fact_id = matches.sure[0].id
        return {"facts": [fact.as_json() for fact in await self._facts.history(fact_id)]}

    async def _import(self, params: ImportParams) -> dict[str, Any]:
        """As if they had been said when they were noted."""
        return await take_in(self._facts, params.facts)

    async def _answer_parked(self, params: ParkedParams) -> dict[str, Any]:
        if params.accept and params.restore:
            raise InvalidRequest("accept and restore: only one of them", cure="choose one")
        facts = await self._parked.parked()
        answer: dict[str, Any] = {"facts": [fact.as_json() for fact in facts], "done": ""}
        if facts and params.accept:
            report = await self._parked.accept_parked()
            return {**answer, "done": "forgotten", **report.as_json()}
        if facts and params.restore:
            await self._parked.restore_parked()
            return {**answer, "done": "restored"}
        return answer


def _is_wanted(fact: Fact, params: ListParams) -> bool:
    if not (params.all or fact.is_active):
        return False
    return params.category is None or fact.category == params.category


def _learned(learned: Learned) -> dict[str, Any]:
    if learned.reason is not None:
        why = REFUSED[learned.reason]
        raise InvalidRequest(f"text: not remembered, {why}", cure="say it in other words")
    assert learned.fact is not None
    return {
        "fact": learned.fact.as_json(),
        "new": learned.is_new,
        "superseded": [fact.as_json() for fact in learned.superseded],
        "before": [fact.as_json() for fact in learned.before],
    }
