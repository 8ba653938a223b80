"""Splits a streamed Markdown answer into finished blocks, and renders them as terminal lines."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct
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
_LONG = 3000  # characters after which an open block is split


class BlockKind(StrEnum):
    """The kind of a block."""

    TEXT = "text"
    FENCE = "fence"  # code begins; its text is the language or "code"; or it ends: text ""
    CODE = "code"  # one line of code


class MarkdownBlock(Struct, frozen=True):
    """A part of an answer that later text cannot change. `gap`: a blank line precedes the block.
    `language`: of a line of code.
    """

    kind: BlockKind
    text: str
    gap: bool = False
    language: str = ""


class Blocks:
    """Splits an answer into blocks while it streams in."""

    def __init__(self) -> None:
        self._rest = ""  # the last line, not yet ended
        self._lines: list[str] = []
        self._size = 0
        self._gap = False  # a blank line precedes the open block
        self._waits = False  # a blank line followed a list item, which may continue
        self._fence = ""
        self._language = ""

    def feed(self, text: str) -> Iterator[MarkdownBlock]:
        """Take the next piece of the answer; yield the blocks that it finishes."""
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
        """Yield what is open as finished: the answer has ended, or other output interrupts it."""
        rest, self._rest = self._rest, ""
        if rest:
            yield from self._take(rest)
        yield from self._close()
        if self._fence:
            self._fence = ""
            yield MarkdownBlock(BlockKind.FENCE, "")
        self._gap = False

    def open(self) -> MarkdownBlock | None:
        """Return the unfinished block so far; None if there is none or it cannot be shown yet."""
        if self._fence:
            return None
        rest = "" if _FENCE_BEGUN.match(self._rest) else self._rest
        lines = [*self._lines, rest] if rest else self._lines
        if not lines or lines[0].lstrip().startswith("|"):
            return None  # the widths of a table's columns depend on its last row, too
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
        """Whether a line that follows a blank line still belongs to the list item above."""
        item = _ITEM.match(self._lines[0])
        assert item
        return len(line) - len(line.lstrip()) > len(item[1])

    def _begins_anew(self, line: str) -> bool:
        """Whether a line cannot continue the open block and begins another."""
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
_WIDEST = 1_000_000  # columns; rich would cut a line that must not wrap at the width
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


class Renderer:
    """Renders blocks as lines with ANSI colours. Only lines of code may exceed the given width."""

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
        """Render a block in lines of at most `width` columns; its gap is an empty first line."""
        shown = self._block(block, width)
        return ["", *shown] if block.gap else shown

    def ansi(self, what: RenderableType, width: int) -> list[str]:
        """Render in lines of at most `width` columns, without blank lines at the start and end
        and without control characters from the text.
        """
        with self._console.capture() as captured:
            self._console.print(_WithoutControls(what), width=width, soft_wrap=False)
        lines = [line.rstrip(" ") for line in captured.get().split("\n")]
        full = [at for at, line in enumerate(lines) if _STYLE.sub("", line).strip()]
        return lines[full[0] : full[-1] + 1] if full else [""]

    def styled(self, text: str, style: str) -> str:
        """Return the text in a style of rich, as one line that is not wrapped."""
        return self.ansi(Text(text, style, no_wrap=True, overflow="ignore"), _WIDEST)[0]

    def dim(self, text: str) -> str:
        """Return the text dimmed, as one line that is not wrapped."""
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
    """A heading, aligned left and without the frame that rich draws."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Chat(Markdown):
    """Markdown as typed in a chat: every line break is kept, and HTML is shown as text."""

    elements = {**Markdown.elements, "heading_open": _Heading}  # noqa: RUF012 - as the base has it

    def __init__(self, text: str, parser: MarkdownIt) -> None:
        super().__init__("", code_theme=_THEME, hyperlinks=False)
        self.markup = text
        self.parsed = [_with_hard_breaks(token) for token in parser.parse(text)]


class _WithoutControls:
    """A renderable without control characters: Markdown entities can produce them from text
    that has none.
    """

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
