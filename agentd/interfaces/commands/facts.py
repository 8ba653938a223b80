"""`facts`: commands of the owner for his facts, and questions to the concept graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from agentd.core.errors import GraphOff, InvalidRequest
from agentd.core.fact import Category, ErasureReport, FactStatus, Refusal
from agentd.interfaces.commands import fact_words
from agentd.interfaces.commands.declaration import (
    MODEL_SECONDS,
    NOTES,
    Group,
    Param,
    require_argument,
)
from agentd.interfaces.commands.plain import fields

if TYPE_CHECKING:
    from agentd.core.fact import Fact, FactHit, Matches, OperationResult
    from agentd.core.turn import SessionKey
    from agentd.memory.graph.service import GraphAnswers

FACTS = Group("facts")

ERASING_SECONDS = 300.0  # every file that agentd wrote is gone through
REFUSED = {
    Refusal.CREDENTIAL: "it looks like a secret; keep secrets in a password store",
    Refusal.EMPTY: "it says nothing",
    Refusal.FORGOTTEN: "you had it forgotten",
    Refusal.TOO_LONG: "it is too long for one fact: at most 4,096 characters",
    Refusal.UNKNOWN_ID: "it is about a fact that does not hold",
    Refusal.UNPROVEN: "no words of yours say so",
}

_PAGE = 2_000  # facts in one answer
_MOST = 10  # facts that are listed to choose from in a chat, and lines that mention one
_LIST = "`agentd facts list --all` has the ids"
_NEW = {
    FactStatus.ACTIVE: "Remembered",
    FactStatus.PROPOSED: "Waits for your yes (`agentd facts pending`)",
    FactStatus.SUPERSEDED: "Remembered as what was so before",
    FactStatus.ENDED: "Remembered as what is over",
}

_Category = Literal["personal", "preference", "project", "decision", "instruction", "outcome"]
_About = Annotated[_Category | None, Param("What it is about.")]


class KnownBook(Protocol):
    """Port: all facts, and those whose lines are gone from the facts page (parked)."""

    async def all(self) -> tuple[Fact, ...]:
        """Return every fact; forgotten facts have an id but no text."""

    async def find(self, query: str, limit: int) -> Sequence[FactHit]:
        """Return the active facts that match best."""

    async def history(self, fact_id: str) -> tuple[Fact, ...]:
        """Return the fact with all facts that it replaced and that replaced it, the oldest first.
        Raises NotFound.
        """

    async def parked(self) -> tuple[Fact, ...]:
        """Return the parked facts, with their former text."""

    async def accept_parked(self) -> ErasureReport:
        """Forget the parked facts."""

    async def restore_parked(self) -> tuple[Fact, ...]:
        """Write the lines of the parked facts again, and return the facts."""


class FactCommandService(Protocol):
    """Port: keeps and erases facts for the owner."""

    async def keep(
        self, text: str, session: SessionKey = ..., category: Category | None = None
    ) -> tuple[OperationResult, ...]:
        """Keep words that are the owner's own: what is read out of them, or as they are."""

    async def matching(self, query: str, *, every: bool = False) -> Matches:
        """Return the facts that the query may mean, active ones first; with `every` all that
        contain its words.
        """

    async def forget(
        self,
        fact_ids: Sequence[str],
        also: Sequence[int] = (),
        session: SessionKey = ...,
        typed: str = "",
    ) -> ErasureReport:
        """Erase facts and what says them, mentions by their numbers, and what was typed to ask for
        it. Raises NotFound.
        """

    async def preview(self, fact_ids: Sequence[str]) -> ErasureReport:
        """Return what `forget` would do, without doing it. Raises NotFound."""


class ForgettingNotes(Protocol):
    """Port: finds a text in the notes if no fact matches."""

    async def named(self, said: str) -> str:
        """Return which lines of the notes contain the text."""


class FactCommands:
    """Commands for facts; `/forget` falls back to the notes if no fact matches."""

    def __init__(
        self,
        book: KnownBook,
        service: FactCommandService,
        carry: Callable[[Sequence[Mapping[str, Any]]], Awaitable[dict[str, Any]]],
        notes: ForgettingNotes,
    ) -> None:
        """`carry` takes in rows as `facts export` writes them. Raises InvalidRequest."""
        self._book = book
        self._service = service
        self._carry = carry
        self._notes = notes

    @FACTS.command(fact_words.listed, name="list")
    async def known(
        self,
        query: Annotated[str | None, Param("Only what this finds, the best first.")] = None,
        *,
        all: Annotated[
            bool, Param("Also what no longer holds, and ids of what was forgotten.", ("--all",))
        ] = False,
        category: _About = None,
        limit: Annotated[int, Param("How many.", least=1, most=_PAGE)] = 200,
        ids: Annotated[list[str] | None, Param(length=(0, _PAGE))] = None,
        offset: Annotated[int, Param(least=0)] = 0,
    ) -> dict[str, Any]:
        """List the facts that hold now."""

        def is_wanted(fact: Fact) -> bool:
            if ids is not None:
                return fact.id in ids
            if not (all or fact.is_active):
                return False
            return category is None or fact.category == category

        if query is not None:
            hits = await self._book.find(query, limit)
            found = [hit.as_json() for hit in hits if is_wanted(hit.fact)]
            return {"facts": found, "total": len(found)}
        held = [fact for fact in await self._book.all() if is_wanted(fact)]
        page = held[offset : offset + limit]
        return {"facts": [fact.as_json() for fact in page], "total": len(held)}

    @FACTS.command(fact_words.added, seconds=MODEL_SECONDS)
    async def add(
        self,
        text: Annotated[str, Param('One sentence: "my dog is called Rex".')],
        *,
        category: _About = None,
    ) -> dict[str, Any]:
        """Have a fact remembered."""
        about = None if category is None else Category(category)
        learned = await self._service.keep(text, category=about)
        kept = [one.fact for one in learned if one.fact is not None]
        gone = [fact for one in learned for fact in one.gone]
        if not (kept or gone):
            raise _refusal_of(learned)
        return {
            "fact": kept[-1].as_json() if kept else None,
            "new": any(one.is_new for one in learned),
            "superseded": [fact.as_json() for fact in gone],
            "before": [fact.as_json() for fact in kept[:-1]],
            "refused": refusals(learned),
        }

    @FACTS.command(fact_words.erased, seconds=ERASING_SECONDS)
    async def forget(
        self,
        query: Annotated[str, Param("Words that the fact says, or its id.")],
        *,
        all: Annotated[bool, Param("Every fact that says the words.", ("--all",))] = False,
        also: Annotated[
            Sequence[int],
            Param(
                "Lines that mention the same, by the numbers of --dry-run.",
                metavar="N...",
                least=1,
                length=(0, _PAGE),
            ),
        ] = (),
        dry_run: Annotated[
            bool, Param("Only say what would be erased, and what stays.", ("--dry-run",))
        ] = False,
    ) -> dict[str, Any]:
        """Erase a fact and what says it wherever agentd keeps it; other lines that mention it are
        listed.
        """
        matches = await self._service.matching(query, every=all)
        named = matches.all_sure if all else certainly_meant(matches, query)
        if not named:  # nothing is done where several facts may be meant
            candidates = [fact.as_json() for fact in matches.sure or matches.maybe]
            return {"forgotten": [], "candidates": candidates, **ErasureReport().as_json()}
        ids = [fact.id for fact in named]
        if dry_run:
            report = await self._service.preview(ids)
        else:
            report = await self._service.forget(ids, also)
        return {"forgotten": ids, "candidates": [], **report.as_json()}

    @FACTS.command(fact_words.history)
    async def history(
        self, fact: Annotated[str, Param("The fact's id, or words that only it says.")]
    ) -> dict[str, Any]:
        """Show what a fact was before, and from when to when."""
        fact_id = fact
        if not any(one.id == fact_id for one in await self._book.all()):
            fact_id = _only(await self._service.matching(fact)).id
        return {"facts": [one.as_json() for one in await self._book.history(fact_id)]}

    @FACTS.command(fact_words.parked, seconds=ERASING_SECONDS)
    async def parked(
        self,
        *,
        accept: Annotated[bool, Param("Yes, forget them.", ("--accept",))] = False,
        restore: Annotated[bool, Param("No, write them again.", ("--restore",))] = False,
    ) -> dict[str, Any]:
        """List facts whose lines went from memory/facts.md, many at once, and say what to do."""
        if accept and restore:
            raise InvalidRequest("accept and restore: only one of them", cure="choose one")
        facts = await self._book.parked()
        answer: dict[str, Any] = {"facts": [fact.as_json() for fact in facts], "done": ""}
        if facts and accept:
            report = await self._book.accept_parked()
            return {**answer, "done": "forgotten", **report.as_json()}
        if facts and restore:
            await self._book.restore_parked()
            return {**answer, "done": "restored"}
        return answer

    @FACTS.command(fields, name="import", seconds=ERASING_SECONDS)
    async def take_in(
        self, facts: Annotated[list[dict[str, Any]], Param(length=(0, _PAGE))]
    ) -> dict[str, Any]:
        """Take in facts that another agentd exported."""
        return await self._carry(facts)  # as if they had been said when they were noted

    @FACTS.slash("remember", "Keep a fact", "what to remember", owners=NOTES)
    async def remember_typed(self, session: SessionKey, text: str) -> str:
        """Keep the text and return what was kept, what it replaced, and what was refused."""
        learned = await self._service.keep(
            require_argument(text, "/remember my dog is called Rex"), session
        )
        return "\n".join(line for one in learned for line in _learned_lines(one))

    @FACTS.slash("forget", "Erase a fact everywhere", "what it says, or its id", owners=NOTES)
    async def forget_typed(self, session: SessionKey, text: str) -> str:
        """Erase a fact that is meant for certain and return what was erased; otherwise return the
        possible facts, or the lines of notes.
        """
        said = require_argument(text, "/forget my dog")
        matches = await self._service.matching(said)
        if named := certainly_meant(matches, said):
            report = await self._service.forget([fact.id for fact in named], typed=said)
            return "\n".join(_erased_lines(report))
        if found := matches.sure or matches.maybe:
            lines = (f"- {fact.text} → /forget {fact.id}" for fact in found[:_MOST])
            return "\n".join(["Which one? Nothing was erased yet.", *lines])
        return await self._notes.named(said)


def certainly_meant(matches: Matches, query: str) -> tuple[Fact, ...]:
    """Return the facts to erase if the query is unambiguous: a single match with the facts it
    replaced, or facts named by their ids. Otherwise ().
    """
    is_named = {fact.id for fact in matches.sure} == set(query.split())
    return matches.all_sure if is_named or len(matches.sure) == 1 else ()


def refusals(learned: Sequence[OperationResult]) -> list[dict[str, str]]:
    """Return why parts were not kept: each reason as a code and in words."""
    reasons = (one.reason for one in learned if one.reason is not None)
    return [{"reason": str(reason), "text": REFUSED[reason]} for reason in reasons]


def fact_line(head: str, fact: Fact) -> str:
    """Return a line for the chat: `head`, the fact's text and its id."""
    return f"{head}: {fact.text} ({fact.id})"


def _refusal_of(learned: Sequence[OperationResult]) -> InvalidRequest:
    why = "; ".join(dict.fromkeys(one["text"] for one in refusals(learned)))
    return InvalidRequest(f"text: not remembered, {why}", cure="say it in other words")


def _only(matches: Matches) -> Fact:
    """Return the single matching fact. Raises InvalidRequest if there is none or more than one."""
    match matches.sure:
        case (fact,):
            return fact
        case ():
            raise InvalidRequest("fact: none says that", cure=_LIST)
    raise InvalidRequest(f"fact: {len(matches.sure)} facts say that", cure=f"give an id: {_LIST}")


def _learned_lines(one: OperationResult) -> Iterator[str]:
    if one.reason is not None:
        yield f"Not remembered: {REFUSED[one.reason]}."
    if one.fact is not None:
        yield fact_line(_NEW[one.fact.status] if one.is_new else "I know that already", one.fact)
    for old in one.gone:
        if one.fact is not None:
            yield fact_line("It replaces", old)
        elif old.is_active and old.valid_to is not None:
            yield fact_line(f"Holds until {old.valid_to:%Y-%m-%d}", old)
        else:
            yield fact_line("No longer so", old)


def _erased_lines(report: ErasureReport) -> Iterator[str]:
    """Yield what was erased, without repeating its words, and what the owner can still do."""
    count = sum(report.places.values())
    yield f"Forgotten, in {'one place' if count == 1 else f'{count} places'}."
    if report.besides:
        yield f"All that you said beside it went, too: {', '.join(report.besides)}."
    if report.also:
        yield "These mention the same and stay; `agentd memory forget` erases what you name:"
        yield from (f"{one.n}. {one.place}: {one.text}" for one in report.also[:_MOST])
    if more := max(0, len(report.also) - _MOST) + report.more:
        yield f"… and {more} more."
    if report.backups:
        yield f"Copies that may still hold it: {', '.join(report.backups)}."
    if report.pending:
        yield (
            f"Still to be erased: {', '.join(report.pending)}. `agentd status` "
            "says when it is done."
        )


GRAPH = Group("facts")

_MOST_DRAWN = 50  # concepts of a picture: no way finds more

Form = Literal["picture", "0c", "zero", "l0", "l1", "l2", "prompt"]
Way = Literal["paths", "breadth", "activation"]


class GraphCommands:
    """Commands that ask the concept graph."""

    def __init__(self, graph: GraphAnswers) -> None:
        self._graph = graph

    # Both are shown by functions of the command line: what reads or draws the graph is loaded with
    # them alone.

    @GRAPH.command(fields)
    async def query(
        self,
        question: Annotated[
            str,
            Param(
                '"FIND concept FROM user BY paths" (or breadth, activation), or any text: '
                "what it names is found."
            ),
        ],
        *,
        limit: Annotated[int, Param("How many facts about a text.", least=1, most=50)] = 10,
    ) -> dict[str, Any]:
        """Ask how what the agent knows hangs together."""
        return await self._graph.ask(question, limit)

    @GRAPH.command(fields)
    async def graph(
        self,
        name: Annotated[str, Param("What is in the middle, such as user.")],
        *,
        depth: Annotated[
            int | None,
            Param("How many facts away: 2 unless you say it, at most 4.", least=1),
        ] = None,
        most: Annotated[int, Param("How many concepts.", least=1, most=_MOST_DRAWN)] = 24,
        by: Annotated[
            Way, Param("By what is surest, by the fewest facts away, or by what comes to mind.")
        ] = "paths",
        form: Annotated[Form, Param()] = "picture",
    ) -> dict[str, Any]:
        """Draw what is known around a name."""
        return await self._graph.around(name, depth, most, by, form)


def graph_is_off() -> GraphOff:
    """Return the error for a graph that is switched off."""
    return GraphOff(
        "the concept graph is switched off",
        cure="set `enabled = true` in the [graph] table of config.toml, then `agentd restart`",
    )
