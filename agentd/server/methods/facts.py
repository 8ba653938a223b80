"""`_agentd/facts/*`: what is known about the owner, in the owner's own hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from agentd.domain.fact import Category, ErasureReport, Fact, FactHit, Learned, Matches, Refusal
from agentd.errors import InvalidRequest
from agentd.memory.facts.exchange import Carrier, take_in
from agentd.ports import FactService
from agentd.server.methods.params import Params, handler
from agentd.server.peer import Handler

_PAGE = 2_000  # facts in one answer
_CATEGORIES = Literal["personal", "preference", "project", "decision", "instruction", "outcome"]
_LIST = "`agentd facts list --all` has the ids"
REFUSED = {
    Refusal.CREDENTIAL: "it looks like a secret; keep secrets in a password store",
    Refusal.EMPTY: "it says nothing",
    Refusal.FORGOTTEN: "you had it forgotten",
    Refusal.TOO_LONG: "it is too long for one fact: at most 4,096 characters",
    Refusal.UNKNOWN_ID: "it is about a fact that does not hold",
    Refusal.UNPROVEN: "no words of yours say so",
}


class OwnedFacts(FactService, Protocol):
    """What the owner asks of his facts, and what he sees before he has them forgotten."""

    async def preview(self, fact_ids: Sequence[str]) -> ErasureReport:
        """What `forget` would do; nothing is done. Raises NotFound."""


class Book(Carrier, Protocol):
    """The facts, and those whose lines are gone from the page, many at once."""

    async def parked(self) -> tuple[Fact, ...]:
        """Facts whose lines are gone, as they were."""

    async def accept_parked(self) -> ErasureReport:
        """Forget them."""

    async def restore_parked(self) -> tuple[Fact, ...]:
        """Write their lines again."""


class ListParams(Params):
    """Which facts: by default those that hold now. `ids` names some, in whatever status."""

    all: bool = False
    category: _CATEGORIES | None = None
    query: str | None = None
    ids: list[str] | None = Field(None, max_length=_PAGE)
    limit: int = Field(200, ge=1, le=_PAGE)
    offset: int = Field(0, ge=0)


class AddParams(Params):
    """A fact in the owner's words."""

    text: str
    category: _CATEGORIES | None = None


class ForgetParams(Params):
    """Words or an id. `all` means every fact that says the words, `also` lines by the numbers that
    `dry_run` has shown; with that nothing is done.
    """

    query: str
    all: bool = False
    also: list[Annotated[int, Field(ge=1)]] = Field([], max_length=_PAGE)
    dry_run: bool = False


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

    def __init__(self, book: Book, service: OwnedFacts) -> None:
        self._book = book
        self._service = service

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
            hits: Sequence[FactHit] = await self._book.find(params.query, params.limit)
            found = [hit.as_json() for hit in hits if _is_wanted(hit.fact, params)]
            return {"facts": found, "total": len(found)}
        known = [fact for fact in await self._book.all() if _is_wanted(fact, params)]
        page = known[params.offset : params.offset + params.limit]
        return {"facts": [fact.as_json() for fact in page], "total": len(known)}

    async def _add(self, params: AddParams) -> dict[str, Any]:
        """A text may say several things: `fact` is the last that is kept, `before` are the others."""
        category = None if params.category is None else Category(params.category)
        learned = await self._service.keep(params.text, category=category)
        kept = [one.fact for one in learned if one.fact is not None]
        gone = [fact for one in learned for fact in one.gone]
        if not (kept or gone):
            raise _refused(learned)
        return {
            "fact": kept[-1].as_json() if kept else None,
            "new": any(one.is_new for one in learned),
            "superseded": [fact.as_json() for fact in gone],
            "before": [fact.as_json() for fact in kept[:-1]],
            "refused": refusals(learned),
        }

    async def _forget(self, params: ForgetParams) -> dict[str, Any]:
        """With several facts that may be meant, nothing is done: `candidates` lists them."""
        matches = await self._service.matching(params.query, every=params.all)
        named = matches.all_sure if params.all else meant(matches, params.query)
        if not named:
            candidates = [fact.as_json() for fact in matches.sure or matches.maybe]
            return {"forgotten": [], "candidates": candidates, **ErasureReport().as_json()}
        ids = [fact.id for fact in named]
        if params.dry_run:
            report = await self._service.preview(ids)
        else:
            report = await self._service.forget(ids, params.also)
        return {"forgotten": ids, "candidates": [], **report.as_json()}

    async def _history(self, params: HistoryParams) -> dict[str, Any]:
        fact_id = params.fact
        if not any(fact.id == fact_id for fact in await self._book.all()):
            fact_id = _only(await self._service.matching(params.fact)).id
        return {"facts": [fact.as_json() for fact in await self._book.history(fact_id)]}

    async def _import(self, params: ImportParams) -> dict[str, Any]:
        """As if they had been said when they were noted."""
        return await take_in(self._book, params.facts)

    async def _answer_parked(self, params: ParkedParams) -> dict[str, Any]:
        if params.accept and params.restore:
            raise InvalidRequest("accept and restore: only one of them", cure="choose one")
        facts = await self._book.parked()
        answer: dict[str, Any] = {"facts": [fact.as_json() for fact in facts], "done": ""}
        if facts and params.accept:
            report = await self._book.accept_parked()
            return {**answer, "done": "forgotten", **report.as_json()}
        if facts and params.restore:
            await self._book.restore_parked()
            return {**answer, "done": "restored"}
        return answer


def meant(matches: Matches, query: str) -> tuple[Fact, ...]:
    """The facts that nothing else can be meant by: the only one with what it replaced, or those that are
    named by their ids.
    """
    is_named = {fact.id for fact in matches.sure} == set(query.split())
    return matches.all_sure if is_named or len(matches.sure) == 1 else ()


def refusals(learned: Sequence[Learned]) -> list[dict[str, str]]:
    """Why some of it changed nothing: each reason as a code and in words."""
    reasons = (one.reason for one in learned if one.reason is not None)
    return [{"reason": str(reason), "text": REFUSED[reason]} for reason in reasons]


def _is_wanted(fact: Fact, params: ListParams) -> bool:
    if params.ids is not None:
        return fact.id in params.ids
    if not (params.all or fact.is_active):
        return False
    return params.category is None or fact.category == params.category


def _refused(learned: Sequence[Learned]) -> InvalidRequest:
    why = "; ".join(dict.fromkeys(one["text"] for one in refusals(learned)))
    return InvalidRequest(f"text: not remembered, {why}", cure="say it in other words")


def _only(matches: Matches) -> Fact:
    """The one fact that is meant. Raises InvalidRequest where that is not sure."""
    match matches.sure:
        case (fact,):
            return fact
        case ():
            raise InvalidRequest("fact: none says that", cure=_LIST)
    raise InvalidRequest(f"fact: {len(matches.sure)} facts say that", cure=f"give an id: {_LIST}")
