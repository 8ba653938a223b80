"""Formats the answers of the facts commands for people: one function for each command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentd.core.fact import place_in_words
from agentd.interfaces.commands.plain import counted, table, visible

Answer = Mapping[str, Any]

_MENTIONED = 10  # remaining lines that are shown

_AGAIN = {"active": "holds again", "proposed": "waits for your yes again"}


def listed(result: Answer) -> str:
    """Return the facts with their ids, and how many more there are."""
    lines = _with_status(result["facts"])
    if (left := result["total"] - len(lines)) > 0:
        lines.append(f"… and {left} more: --limit")
    return "\n".join(lines) or "nothing is known yet: `agentd facts add` or just tell it in a chat"


def added(result: Answer) -> str:
    """Return each fact that was kept, what it replaced, and what was not kept."""
    kept = [f"remembered: {_text(fact)}" for fact in result["before"]]
    if (last := result["fact"]) is not None:
        kept.append(f"{'remembered' if result['new'] else 'known already'}: {_text(last)}")
    return "\n".join([*kept, *_put_aside(result), *_not_kept(result)])


def forgotten(result: Answer, seen: Mapping[str, str]) -> str:
    """Return what was erased. For a dry run, `seen` has the sentences by id, and the text says what
    would be erased.
    """
    if not result["forgotten"]:
        lines = [f"{fact['id']}  {_text(fact)}" for fact in result["candidates"]]
        if not lines:
            return "no fact says that; `agentd memory forget` erases any other text"
        return "\n".join(["several facts may be meant; give one's id:", *lines])
    if not seen:
        return erased(result)
    facts = [f"{fact_id}  {visible(text)}" for fact_id, text in seen.items()]
    how = ["`--also N` erases a line with it"] if result["also"] else []
    return "\n".join([*facts, erased(result, is_done=False), *how])


def text_erased(result: Answer) -> str:
    """Return what was erased of a text; for a dry run, the sentences that would be erased."""
    if not result["dry_run"]:
        return erased(result)
    if not result["goes"]:
        return "agentd keeps no sentence that says this where it may erase it"
    lines = [
        f"{visible(one['text'])}\n    {place_in_words(one['where'], one['others'])}"
        for one in result["goes"]
    ]
    if result["more"]:
        lines.append(f"… and {result['more']} more")
    return "\n".join([*lines, erased({**result, "more": 0}, is_done=False)])


def erased(result: Answer, *, is_done: bool = True) -> str:
    """Return in how many places it was (or, without `is_done`, would be) erased, and what
    remains.
    """
    counts = ", ".join(f"{count} in {place}" for place, count in result["places"].items() if count)
    done = "forgotten" if is_done else "would be forgotten"
    lines = [f"{done}{f', with {counts}' if counts else ''}"]
    lines += [f"all that you said beside it goes, too: {where}" for where in result["besides"]]
    if result["also"]:
        lines.append("what mentions the same stays:")
    most = _MENTIONED if is_done else len(result["also"])  # what may still be named is all shown
    lines += [
        f"  {one['n']}  {place_in_words(one['where'], one['others'])}  {visible(one['text'])}"
        for one in result["also"][:most]
    ]
    if more := max(0, len(result["also"]) - most) + result["more"]:
        lines.append(f"  … and {more} more; `agentd memory search` finds them")
    lines += [f"a copy may still hold it: {place}" for place in result["backups"]]
    lines += [f"still to be erased: {place}" for place in result["pending"]]
    if result["pending"]:
        lines.append("it goes on by itself; `agentd status` says when it is done")
    return "\n".join(lines)


def history(result: Answer) -> str:
    """Return the period in which each fact was valid."""
    return "\n".join(
        f"{fact['valid_from']} – {fact['valid_to'] or 'now'}  {_text(fact)}"
        for fact in result["facts"]
    )


def parked(result: Answer) -> str:
    """Return the facts whose lines are gone from the facts page, or what was done about them."""
    if not result["facts"]:
        return "no line is missing"
    done = result["done"] or "these lines are gone from memory/facts.md; --accept or --restore"
    return "\n".join([f"{done}:", *_with_status(result["facts"])])


def changes(result: Answer, texts: Mapping[str, str]) -> str:
    """Return one row a change. `texts` has the existing facts' sentences by id; other facts are
    shown by their id.
    """
    rows = (
        {**one, "op": _done(one), "fact": _change_text(one, texts)} for one in result["changes"]
    )
    return table(rows, ("id", "at", "op", "session", "fact"), "nothing has changed yet")


def taken_back(result: Answer) -> str:
    """Return which facts are gone, and which are valid again."""
    lines = [f"taken back: {_text(fact)}" for fact in result["removed"]]
    lines += [
        f"{_AGAIN.get(fact['status'], 'as it was before')}: {_text(fact)}"
        for fact in result["restored"]
    ]
    return "\n".join(lines)


def merged(result: Answer) -> str:
    """Return the fact that stays, and the facts that it now stands for."""
    lines = [f"  stands for: {_text(fact)}" for fact in result["superseded"]]
    return "\n".join([f"kept: {_text(result['fact'])}", *lines])


def pending(result: Answer) -> str:
    """Return the facts that wait for a yes, each with what it would replace."""
    lines = []
    for fact in result["facts"]:
        lines.append(f"{fact['id']}  {_as_text(fact)}")
        lines += [f"  would replace: {_text(old)}" for old in fact["replaces"]]
    return "\n".join(lines) or "nothing waits for your yes"


def accepted(result: Answer) -> str:
    """Return the facts that are valid now, and what they replaced."""
    lines = [f"remembered: {_text(fact)}" for fact in result["facts"]]
    return "\n".join([*lines, *_put_aside(result), *_not_kept(result)])


def rejected(result: Answer) -> str:
    """Return the facts that were dropped."""
    return "\n".join(f"dropped: {_text(fact)}" for fact in result["facts"])


def validated(result: Answer) -> str:
    """Return what was (or in a dry run would be) put aside, each with the reason."""
    lines = [f"{pair['id']}  says the same as {pair['of']}" for pair in result["duplicates"]]
    lines += [f"{pair['id']}  is no longer so: {pair['by']}" for pair in result["conflicts"]]
    lines += [f"{fact_id}  was not said again for long" for fact_id in result["stale"]]
    lines += [f"{fact_id}  is one too many" for fact_id in result["evicted"]]
    facts = counted(result["checked"], "fact")
    if not lines:
        return f"nothing to put aside among {facts}"
    verb = "would be" if result["dry_run"] else "was" if len(lines) == 1 else "were"
    head = f"{len(lines)} of {facts} {verb} put aside; `history` shows what became of one:"
    return "\n".join([head, *lines])


def _with_status(facts: Sequence[Answer]) -> list[str]:
    width = max((len(fact["status"]) for fact in facts), default=0)
    return [f"{fact['id']}  {fact['status']:<{width}}  {_as_text(fact)}" for fact in facts]


def _as_text(fact: Answer) -> str:
    about = [str(fact["category"]), str(fact["source"])]
    if fact["text"] is not None and fact["valid_to"]:
        about.append(f"until {fact['valid_to']}")
    return f"{_text(fact)}  ({', '.join(about)})"


def _text(fact: Answer) -> str:
    return "(forgotten)" if fact["text"] is None else visible(fact["text"])


def _put_aside(result: Answer) -> Iterator[str]:
    for fact in result["superseded"]:
        what = "replaces" if fact["superseded_by"] else "no longer so"
        if fact["status"] == "active":
            what = f"holds until {fact['valid_to']}"
        yield f"  {what}: {_text(fact)}"


def _not_kept(result: Answer) -> Iterator[str]:
    return (f"not remembered: {one['text']}" for one in result["refused"])


def _done(change: Answer) -> str:
    return f"{change['op']} (taken back)" if change["undone"] else str(change["op"])


def _change_text(change: Answer, texts: Mapping[str, str]) -> str:
    new = visible(texts.get(change["new"], change["new"] or ""))
    others = (fact_id for fact_id in change["old"] if fact_id != change["new"])
    old = "; ".join(visible(texts.get(fact_id, fact_id)) for fact_id in others)
    return f"{new} (was: {old})" if new and old else new or old
