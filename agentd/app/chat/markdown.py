"""A streamed answer in markdown: cut into blocks that are shown once, and these as lines."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from agentd.interfaces.commands.plain import visible

_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*+([^`]*)$")
_FENCE_BEGUN = re.compile(r"\s*(`{1,}|~{2,})[^`]*$")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(\s|$)")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
_LONG = 3000  # characters of one block, after which it is shown in parts


class BlockKind(StrEnum):
    """What a block is."""

    TEXT = "text"
    FENCE = "fence"  # code begins or, without a language, ends
    CODE = "code"  # one line of it


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A part of an answer that later words cannot change. `gap` says that it stands apart from what
    is above; `language` is that of code.
    """

    kind: BlockKind
    text: str
    gap: bool = False
    language: str = ""


class Blocks:
    """Takes an answer as it comes and gives its finished blocks."""

    def __init__(self) -> None:
        self._rest = ""  # of a line that has not ended
        self._lines: list[str] = []
        self._size = 0
        self._gap = False  # a blank line stands before the open block
        self._waits = False  # a blank line follows a list item, which may go on
        self._fence = ""
        self._language = ""

    def feed(self, text: str) -> Iterator[MarkdownBlock]:
        """Go on with the answer."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            yield from self._take(line)
        if len(self._rest) > _LONG and not self._fence:
            head, space, tail = self._rest.rpartition(" ")
            if space:
                self._rest = tail
                yield from self._take(head)
                yield from self._close()

    def finish(self) -> Iterator[MarkdownBlock]:
        """The answer is over, or something else comes between."""
        rest, self._rest = self._rest, ""
        if rest:
            yield from self._take(rest)
        yield from self._close()
        if self._fence:
            self._fence = ""
            yield MarkdownBlock(BlockKind.FENCE, "")
        self._gap = False

    def open(self) -> MarkdownBlock | None:
        """What has come of the block that is not finished, if a part of it can be shown already."""
        if self._fence:
            return None
        rest = "" if _FENCE_BEGUN.match(self._rest) else self._rest
        lines = [*self._lines, rest] if rest else self._lines
        if not lines or lines[0].lstrip().startswith("|"):
            return None  # columns of a table are as wide as its widest row
        return MarkdownBlock(BlockKind.TEXT, "\n".join(lines), self._gap)

    def _take(self, line: str) -> Iterator[MarkdownBlock]:
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence[2].startswith(self._fence) and not fence[3]:
                self._fence = ""
                yield MarkdownBlock(BlockKind.FENCE, "")
            else:
                yield MarkdownBlock(BlockKind.CODE, line, language=self._language)
        elif fence:
            waited = self._waits
            yield from self._close()
            self._gap = self._gap or waited
            self._fence, self._language = fence[2], fence[3].strip()
            words = self._language.split()
            self._language = words[0] if words else ""
            yield MarkdownBlock(BlockKind.FENCE, self._language or "code", self._gap)
            self._gap = False
        elif not line.strip():
            if self._lines and _ITEM.match(self._lines[0]):
                self._waits = True
            else:
                yield from self._close()
                self._gap = True
        else:
            yield from self._text(line)

    def _text(self, line: str) -> Iterator[MarkdownBlock]:
        if self._waits:
            if self._belongs(line):
                self._waits = False
                self._lines.append("")
            else:
                yield from self._close()
                self._gap = True
        if self._lines and self._begins_anew(line):
            yield from self._close()
        self._lines.append(line)
        self._size += len(line)
        if _HEADING.match(line):
            yield from self._close()

    def _belongs(self, line: str) -> bool:
        """Whether a line after a blank one still belongs to the list item above."""
        item = _ITEM.match(self._lines[0])
        assert item
        return len(line) - len(line.lstrip()) > len(item[1])

    def _begins_anew(self, line: str) -> bool:
        """Whether a line cannot go on with the open block."""
        first = self._lines[0]
        item, above = _ITEM.match(line), _ITEM.match(first)
        if item:
            return above is None or len(item[1]) <= len(above[1])
        if first.lstrip().startswith("|") and "|" not in line:
            return True
        return bool(_HEADING.match(line)) or self._size > _LONG

    def _close(self) -> Iterator[MarkdownBlock]:
        lines, self._lines = self._lines, []
        gap, self._gap = self._gap, False
        self._size = 0
        self._waits = False
        if lines:
            yield MarkdownBlock(BlockKind.TEXT, "\n".join(lines), gap)
        else:
            self._gap = gap


_THEME = "ansi_dark"  # the terminal's own colours, on its own background
_RULE = "──"
_WIDEST = 1_000_000  # nothing of a line that is not to be wrapped may be lost
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Renderer:
    """Turns blocks into lines with colours, none wider than asked for but those of code."""

    def __init__(self) -> None:
        self._console = Console(
            file=io.StringIO(),
            width=_WIDEST,
            force_terminal=True,
            highlight=False,
            legacy_windows=False,
        )
        self._parser = MarkdownIt("commonmark", {"html": False})
        self._parser.enable(["table", "strikethrough"])
        self._syntaxes: dict[str, Syntax | None] = {}

    def lines(self, block: MarkdownBlock, width: int) -> list[str]:
        """What to show of a block."""
        shown = self._block(block, width)
        return ["", *shown] if block.gap else shown

    def ansi(self, what: RenderableType, width: int) -> list[str]:
        """A renderable as lines; what steers a terminal is taken out of its words."""
        with self._console.capture() as captured:
            self._console.print(_Harmless(what), width=width, soft_wrap=False)
        lines = [line.rstrip(" ") for line in captured.get().split("\n")]
        full = [at for at, line in enumerate(lines) if _STYLE.sub("", line).strip()]
        return lines[full[0] : full[-1] + 1] if full else [""]

    def styled(self, text: str, style: str) -> str:
        """One line in a style of rich, as wide as it is."""
        return self.ansi(Text(text, style, no_wrap=True, overflow="ignore"), _WIDEST)[0]

    def dim(self, text: str) -> str:
        """One line that stays in the background."""
        return self.styled(text, "dim")

    def _block(self, block: MarkdownBlock, width: int) -> list[str]:
        match block.kind:
            case BlockKind.TEXT:
                return self.ansi(_Chat(block.text, self._parser), width)
            case BlockKind.FENCE:
                return [self.dim(f"{_RULE} {block.text}" if block.text else _RULE)]
            case BlockKind.CODE:
                return [self._code(block.text.expandtabs(4), block.language)]

    def _code(self, line: str, language: str) -> str:
        if language not in self._syntaxes:
            self._syntaxes[language] = _syntax(language)
        syntax = self._syntaxes[language]
        if syntax is None or not line.strip():
            return visible(line)
        text = syntax.highlight(line)
        text.rstrip()
        text.no_wrap, text.overflow = True, "ignore"
        return self.ansi(text, _WIDEST)[0]


class _Heading(Heading):
    """A heading at the left edge, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Chat(Markdown):
    """Markdown as people type it in a chat: a line's end is one, and no HTML is taken away."""

    elements = {**Markdown.elements, "heading_open": _Heading}  # noqa: RUF012 - as the base has it

    def __init__(self, text: str, parser: MarkdownIt) -> None:
        super().__init__("", code_theme=_THEME, hyperlinks=False)
        self.markup = text
        self.parsed = [_with_hard_breaks(token) for token in parser.parse(text)]


class _Harmless:
    """A renderable without the characters that an entity of markdown may have brought back."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        for segment in console.render(self._inner, options):
            yield Segment(visible(segment.text), segment.style, segment.control)


def _with_hard_breaks(token: Token) -> Token:
    for child in token.children or []:
        if child.type == "softbreak":
            child.type = "hardbreak"
    return token


def _syntax(language: str) -> Syntax | None:
    lexer = Syntax("", language, theme=_THEME).lexer
    return Syntax("", lexer, theme=_THEME) if lexer is not None else None
