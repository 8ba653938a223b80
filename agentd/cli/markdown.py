"""Blocks of markdown as lines for a terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.syntax import Syntax
from rich.text import Text

from agentd.cli.blocks import Block, Kind
from agentd.commands.plain import visible

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

    def lines(self, block: Block, width: int) -> list[str]:
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

    def _block(self, block: Block, width: int) -> list[str]:
        match block.kind:
            case Kind.TEXT:
                return self.ansi(_Chat(block.text, self._parser), width)
            case Kind.FENCE:
                return [self.dim(f"{_RULE} {block.text}" if block.text else _RULE)]
            case Kind.CODE:
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
        self.parsed = [_kept(token) for token in parser.parse(text)]


class _Harmless:
    """A renderable without the characters that an entity of markdown may have brought back."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        for segment in console.render(self._inner, options):
            yield Segment(visible(segment.text), segment.style, segment.control)


def _kept(token: Token) -> Token:
    for child in token.children or []:
        if child.type == "softbreak":
            child.type = "hardbreak"
    return token


def _syntax(language: str) -> Syntax | None:
    lexer = Syntax("", language, theme=_THEME).lexer
    return Syntax("", lexer, theme=_THEME) if lexer is not None else None
