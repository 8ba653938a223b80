"""The fixed texts of the offline provider, and the test for them in a transcript."""

from __future__ import annotations

import re

from agentd.core.paths import prompt

HELP = prompt("offline_help")
WHO = (
    "I am agentd in its built-in offline mode: fixed rules, not a language model. "
    "I note, find and remind; say “help” for what I can do."
)
GREETING = f"Hello. {WHO}"
FIRST = (
    "This is our first conversation. Tell me with “remember that …” what I should know of you; "
    "BOOTSTRAP.md holds questions for later, once a language model is set up."
)
WELCOME = "You are welcome."
BLIND = "I cannot see images in offline mode, so I go by your words alone."
EMPTY = "There were no words in that message."
STATED = (
    "I have done nothing with that; it stands in this conversation, where it is found. Say "
    "“remember that …” to have it written down, “forget …” to have it erased. (Offline mode: I do "
    "not understand what I am told, I only store and find it.)"
)
# As it is in transcripts of earlier versions.
_STATED_BEFORE = "I have kept that in this conversation, w"
LEARNT_LATER = (
    "That becomes a fact when this conversation has rested for a while. Say “remember that …” to "
    "have it kept at once."
)
UNKNOWN = (
    "I have no rule for that in offline mode. Ask a question and I look in your notes, say "
    "“remember that …” to note something, or “help” for the rest."
)
WHAT_TO_REMEMBER = "Nothing to note yet: say “remember that …” with the words to keep."
NO_WORDS = "I could not search: the question has no telling word. Name a person, thing or date."
NO_TOOL = "I cannot do that here: this session does not have the tool {tool}."

REMEMBERED = "I'll remember that: {text}"
REPLACED = "It replaces: {text}"
KNOWN = "I know that already: {text}"
NOT_REMEMBERED = "I could not remember that: {why}"
NO_YES = "it wanted your yes."
NOTED = "Noted in {path}: {text}"
NOT_NOTED = "I could not note that: {why} It stays in this conversation only."
LISTED = "On the checklist now ({path}): {text}"
NOT_LISTED = "I could not put that on the checklist: {why}"
SCHEDULED = "Reminder set: “{text}”. {result}"
NOT_SCHEDULED = "I could not set that reminder: {why}"
ALERTED = "Alert: {result}"
NOT_ALERTED = "I could not alert you: {why}"
NOT_READ = "I could not read that: {why}"
CHECKLIST = "On the checklist:"
CHECKLIST_EMPTY = "The checklist has no open entry."
FOUND = "From memory:"
CLOSEST = "Nothing says exactly that. The closest I find:"
NOTHING = "I find nothing about that in what I may read here."
TOLD = "You told me:"
TOLD_ITEM = "· "
TOLD_NOTHING = (
    "I was not told any fact here. “remember that …” adds one; `agentd facts list` "
    "shows all there are."
)
HEARD = "Earlier in this conversation you said:"
OTHERWISE = "What is kept says otherwise:"
OLDER = "Only an older line says that:"
WHICH = "Which one? Nothing was erased yet."
CHOOSE = "Answer with a number, its words, “all” or “none”."
NOT_ERASED = "Nothing was erased: {why}"
NONE_ERASED = "Nothing was erased."
FORGET_WHAT = "What shall I forget? Say “forget …” with the words of it."
NOT_AGREED = "you did not agree."
WROTE_YOURSELF = "You wrote it yourself here, where it stays"
NO_FACT = "No fact says that; nothing was erased."
CANNOT_FORGET = "I cannot erase anything here."
_LINES = (
    "These lines hold it; delete them, or let `agentd memory forget TEXT` erase what agentd wrote:"
)
_NO_LINES = (
    "I find nothing about that in what I may read here either; `agentd memory forget TEXT` "
    "erases any text."
)
FACT_LINES = "These facts may be meant, nothing was erased; say “forget …” with the words of one:"
FORGET_LINES = f"{CANNOT_FORGET} {_LINES}"
FORGET_NOTHING = f"{CANNOT_FORGET} I find nothing about that in what I may read here."
NO_FACT_LINES = f"{NO_FACT} {_LINES}"
NO_FACT_NOTHING = f"{NO_FACT} {_NO_LINES}"
TIME = "It is {now:%A, %Y-%m-%d, %H:%M}."
NO_TIME = "I cannot tell the time here."

_OPENINGS = (
    "I'll remember that: ",
    "It replaces: ",
    "I know that already: ",
    TOLD,
    TOLD_ITEM,
    TOLD_NOTHING,
    HEARD,
    OTHERWISE,
    "Older: ",
    OLDER,
    WHICH,
    CHOOSE,
    "Nothing was erased",
    NO_FACT,
    FACT_LINES[:21],
    "One fact is forgotten",
    "It was forgotten already",
    "Noted in ",
    "I could not ",
    "On the checklist",
    "The checklist has no",
    "Reminder set: ",
    "It is ",
    "Alert: ",
    FOUND,
    "Also: ",
    CLOSEST,
    NOTHING,
    CANNOT_FORGET,
    FORGET_WHAT,
    STATED[:40],
    _STATED_BEFORE,
    LEARNT_LATER,
    UNKNOWN[:40],
    WHAT_TO_REMEMBER[:20],
    "I am agentd",
    "I cannot do that here",
    "Hello. I am agentd",
    FIRST[:30],
    WELCOME,
    EMPTY,
)


# One fact in a list for the user: number, text, id.
OFFERED = "{number}. {text} ({id})"
IS_OFFERED = re.compile(r"\d{1,3}\. (?P<text>.+) \((?P<id>[^\s()]{1,40})\)")


def is_ours(text: str) -> bool:
    """Whether the text is one that the offline provider itself has said."""
    if text.startswith(_OPENINGS) or text in HELP:
        return True
    return IS_OFFERED.fullmatch(text) is not None
