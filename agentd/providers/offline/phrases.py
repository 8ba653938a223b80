"""The fixed words of the offline provider, and how it knows them again in a transcript."""

from __future__ import annotations

from importlib.resources import files

HELP = (files("agentd") / "prompts" / "offline_help.md").read_text(encoding="utf-8").strip()
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
EMPTY = "There were no words in that message."
STATED = (
    "I have kept that in this conversation, without a note of it. Say “remember that …” to have it "
    "written down. (Offline mode: I do not understand what I am told, I only store and find it.)"
)
UNKNOWN = (
    "I have no rule for that in offline mode. Ask a question and I look in your notes, say "
    "“remember that …” to note something, or “help” for the rest."
)
WHAT_TO_REMEMBER = "Nothing to note yet: say “remember that …” with the words to keep."
NO_WORDS = "I could not search: the question has no telling word. Name a person, thing or date."
NO_TOOL = "I cannot do that here: this session does not have the tool {tool}."

NOTED = "Noted in {path}: {text}"
NOT_NOTED = "I could not note that: {why} It stays in this conversation only."
LISTED = "On the checklist now ({path}): {text}"
NOT_LISTED = "I could not put that on the checklist: {why}"
ALERTED = "Alert: {result}"
NOT_ALERTED = "I could not alert you: {why}"
NOT_READ = "I could not read that: {why}"
CHECKLIST = "On the checklist:"
CHECKLIST_EMPTY = "The checklist has no open entry."
FOUND = "From memory:"
CLOSEST = "Nothing says exactly that. The closest I find:"
NOTHING = "I find nothing about that in your notes or conversations."
CANNOT_FORGET = "I cannot erase anything in offline mode."
FORGET_LINES = f"{CANNOT_FORGET} These lines hold it; delete them in the files yourself:"
FORGET_NOTHING = f"{CANNOT_FORGET} I find nothing about that in your notes or conversations."
TIME = "It is {now:%A, %Y-%m-%d, %H:%M}."
NO_TIME = "I cannot tell the time here."

_OPENINGS = (
    "Noted in ",
    "I could not ",
    "On the checklist",
    "The checklist has no",
    "It is ",
    "Alert: ",
    FOUND,
    "Also: ",
    CLOSEST,
    NOTHING,
    CANNOT_FORGET,
    STATED[:40],
    UNKNOWN[:40],
    WHAT_TO_REMEMBER[:20],
    "I am agentd",
    "I cannot do that here",
    "Hello. I am agentd",
    FIRST[:30],
    WELCOME,
    EMPTY,
)


def is_ours(text: str) -> bool:
    """Whether this is something that the offline provider says itself."""
    return text.startswith(_OPENINGS) or text in HELP
