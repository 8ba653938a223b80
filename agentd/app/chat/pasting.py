"""A typed message with its pasted spans, and the images that it carries."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from agentd.app.chat.slash import image_and_words, parse
from agentd.core.errors import InvalidRequest
from agentd.core.spans import Span, Spans, unite_spans
from agentd.interfaces.client.attachments import Attachment, read_image

LONG = 200  # characters from which a pasted single line counts as pasted


class TypedText(Struct, frozen=True):
    """Text with its pasted spans."""

    text: str = ""
    pasted: Spans = ()

    def part(self, start: int, end: int) -> TypedText:
        """Return the part from `start` to `end`."""
        within = ((max(a, start) - start, b - start) for a, b in self.pasted if b > start)
        return TypedText(self.text[start:end], unite_spans(within, end - start))

    def edited(self, text: str) -> TypedText:
        """Return the result of one edit that made the text `text`: characters inserted within a
        paste count as typed.
        """
        if not self.pasted or text == self.text:
            return TypedText(text, self.pasted)
        same = min(len(text), len(self.text))
        start = _common(self.text[:same], text[:same])
        left = same - start
        behind = _common(self.text[len(self.text) - left :][::-1], text[len(text) - left :][::-1])
        end, by = len(self.text) - behind, len(text) - len(self.text)
        kept: list[Span] = []
        for first, last in self.pasted:
            kept += (first, min(last, start)), (max(first, end) + by, last + by)
        return TypedText(text, unite_spans(kept, len(text)))

    def inserted(self, at: int, text: str) -> TypedText:
        """Return the text with `text` pasted at `at`. A short single line counts as typed, since it
        is hardly a quotation.
        """
        made = self.edited(self.text[:at] + text + self.text[at:])
        if len(text) < LONG and "\n" not in text.strip("\n"):
            return made
        return TypedText(
            made.text, unite_spans((*made.pasted, (at, at + len(text))), len(made.text))
        )


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts of equal length."""
    low, high = 0, len(one)
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def split_images(message: TypedText) -> tuple[TypedText, tuple[Attachment, ...]]:
    """Return the words of a message and its images. Reads files, so it blocks. Raises
    InvalidRequest and what `read_image` raises.
    """
    command = parse(message.text)
    if command is None or command[0] != "image":
        return message, ()
    found = image_and_words(command[1])
    if found is None:
        raise InvalidRequest("/image needs a file", cure="type /image PATH and what to say of it")
    path, words = found
    end = len(message.text.rstrip())
    return message.part(end - len(words), end), (read_image(Path(path)),)
