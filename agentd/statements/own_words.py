"""Which parts of a message are the user's own statements: not code, not quotes, nothing pasted."""

from __future__ import annotations

import re

HOLE = "\x00"  # stands where something was taken out; no statement goes over one

_FENCE = re.compile(
    r"^[ \t]*(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_TAIL = re.compile(
    r"^[ \t]*(?:on .{5,80} wrote:|-{2,} ?(?:original|forwarded|weitergeleitete) .{0,40}|-- ?$"
    r"|from: .{1,80}@|am .{5,80} schrieb .{1,60}:)",
    re.IGNORECASE | re.MULTILINE,
)
_LINE = re.compile(
    r"^(?:[ \t]{0,3}[>|$#].*| {4,}\S.*|\t.*|<[^>\n]*>.*|[ \t]*\[?\d{1,2}:\d\d(?::\d\d)?\]? .*"
    r"|[ \t]*\d{4}-\d\d-\d\d[T ]\d\d:.*|[{}\[\]();]+.*"
    r"|[ \t]*(?:\*\*|__)?(?!(?:fyi|btw|by the way|note|ps|p\.s|notiz|info|also|update|edit|correction|remember|ok|well"
    r"|for the record|for context|heads up|reminder|(?:good|great|bad|quick|small|more|big) \w+|(?:one|a) \w+|just so you know|übrigens)\b)"
    r"[A-Za-zÀ-ÿ_][\w .'-]{0,24}(?:\*\*|__)?:(?:\*\*|__)?[ \t].*)$",
    re.IGNORECASE | re.MULTILINE,
)
# What a shell printed between one command and the next.
_PRINTED = re.compile(r"^[ \t]{0,3}\$ .*\n(?:.*\n){1,40}?(?=[ \t]{0,3}\$ )", re.MULTILINE)
_TASK = re.compile(
    r"(?:^|(?<=[.!?\n] )|(?<=\n))[ \t]*(?:(?:please|can you|could you|bitte|now|hey|hi|ok)[, ]+){0,3}"
    r"(?:translate|summari[sz]e|rewrite|rephrase|proofread|correct|fix|edit|improve|paraphrase|review"
    r"|write|draft|reply|compose|generate|explain|analy[sz]e|classify|continue|complete|check|shorten"
    r"|imagine|pretend|act as|role-?play|suppose|let's (?:pretend|play)|you are (?:a|an|my)\b|assume"
    r"|what does|what do you think of|say|repeat|here(?:'s| is| are)|this is what|the following"
    r"|übersetze|fasse|schreib\w*|korrigiere|verbessere|stell dir vor)\b[^.!?:\n]{0,160}"
    r"(?P<what>[:\n])?",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"imagine|pretend|act as|role-?play|suppose|let's p|you are|assume|stell dir vor"
)
_QUOTED = re.compile(
    r"\"[^\"\n]{0,600}(?:\"|$)|“[^“”\n]{0,600}(?:”|$)|„[^„“”\n]{0,600}(?:[“”]|$)|«[^«»\n]{0,600}(?:»|$)"
    r"|(?:(?<=\s)|(?<=^)|(?<=[:(]))['‘](?=\w)[^\n]{2,400}?\w[.!?]?['’](?=[\s.,;:!?)]|$)|`[^`\n]{0,400}(?:`|$)",
    re.MULTILINE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|ich|mein|meine)\b", re.IGNORECASE)
_SHORT_QUOTE = 3  # words that may be a name or a value put in quotes


def own_words(text: str) -> str:
    """The text with everything that is not the user's own statement made holes; as long as before."""
    text = _straight(text.replace(HOLE, " "))
    text = _FENCE.sub(_hole, text)
    if match := _TAIL.search(text):
        text = text[: match.start()] + HOLE * (len(text) - match.start())
    for pattern in (_PRINTED, _LINE):
        text = pattern.sub(_hole, text)
    text = _QUOTED.sub(_quote, text)
    for match in _TASK.finditer(text):
        if match["what"] or _ROLE.search(match[0].casefold()):
            return text[: match.start()] + HOLE * (len(text) - match.start())
    return text


def _straight(text: str) -> str:
    """One spelling of apostrophes inside words and of blanks; every character stays in its place."""
    return re.sub(r"(?<=\w)[’ʼ](?=\w)", "'", text).replace("\u00a0", " ")


def _hole(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", HOLE, match[0])


def _quote(match: re.Match[str]) -> str:
    inside = match[0][1:-1]
    is_closed = len(match[0]) > 2 and not match[0][-1].isalnum()
    if is_closed and len(inside.split()) <= _SHORT_QUOTE and not _FIRST_PERSON.search(inside):
        return f" {inside} "
    return _hole(match)
