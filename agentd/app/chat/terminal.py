"""Reads the user's messages from a terminal."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from agentd.app.chat.asking import CTRL_C, AskingPrompt
from agentd.app.chat.completer import ChatCompleter, SuggestionSources, may_complete
from agentd.app.chat.pasting import TypedText
from agentd.core.paths import ensure_private_dir
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.core.spans import Spans
from agentd.storage.lock import folder_lock

_LONGEST_HISTORY = 256 * 1024  # bytes; a longer file is cut to its newer half
_MENU_ROWS = 6
_CONTINUATION = "  "  # as wide as the prompt
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse #888888"})


class InputHistory(FileHistory):
    """The history of typed messages, with time and session. Answers to questions, lines that begin
    with a space and keys of services are not stored.
    """

    is_paused = False
    session = ""

    def __init__(self, path: Path, clock: Clock) -> None:
        super().__init__(path)
        self._clock = clock

    def append_string(self, string: str) -> None:
        """Add a message to the history."""
        if not self.is_paused and not string.startswith(" "):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """Append the message to the file; a new file is made if the old one was removed."""
        head = f"\n# {self._clock.now().isoformat(sep=' ')} {self.session}\n"
        lines = "".join(f"+{line}\n" for line in Redactor().kept(string).text.split("\n"))
        path = Path(os.fsdecode(self.filename))
        with (
            suppress(OSError),
            folder_lock(path.parent),  # the daemon may be replacing the file
            os.fdopen(_private(path), "ab") as file,
        ):
            file.write((head + lines).encode("utf-8", "replace"))


class Terminal:
    """Reads messages; output that is printed meanwhile appears above the input line."""

    def __init__(
        self,
        sources: SuggestionSources,
        status: Callable[[int], str],
        history: InputHistory,
        *,
        raw: bool,
    ) -> None:
        """`status` returns the status line for the given width in columns. `raw` says that printed
        output may contain colour codes.
        """
        self._history = history
        self._raw = raw
        self._interrupted = False
        self._draft = TypedText()  # the input that a question has put aside
        self._written = TypedText()  # the current input
        self._read = TypedText()
        self._prompt: Callable[[], AskingPrompt] = lambda: AskingPrompt("")
        self._session: PromptSession[str] = PromptSession(
            history=history,
            multiline=True,
            prompt_continuation=_CONTINUATION,
            key_bindings=_keys(self._paste),
            completer=ChatCompleter(sources),
            complete_while_typing=Condition(_may_complete),
            reserve_space_for_menu=_MENU_ROWS,
            bottom_toolbar=lambda: f" {status(get_app().output.get_size().columns - 1)}",
            style=_STYLE,
        )
        self._session.default_buffer.on_text_changed += self._edited

    @property
    def pasted(self) -> Spans:
        """See Keyboard."""
        return self._read.pasted

    def enter(self, session: str) -> None:
        """See Keyboard."""
        self._history.session = session

    async def read(self, prompt: Callable[[], AskingPrompt]) -> str | None:
        """Return the next message; None if the user wants to leave (Ctrl-D, or Ctrl-C twice). At a
        question Ctrl-C returns CTRL_C.
        """
        self._prompt = prompt
        self._session.app.erase_when_done = False
        asking = self._history.is_paused = prompt().is_question
        if asking:  # what was typed before the question cannot be an answer to it
            clear_typeahead(self._session.input)
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        try:
            with patch_stdout(raw=self._raw):
                self._written = TypedText() if asking else self._draft
                line = await self._session.prompt_async(
                    lambda: prompt().text, default=self._written.text
                )
        except asyncio.CancelledError:
            if (
                not self._history.is_paused
            ):  # a message that was begun after a question was withdrawn
                self._draft = self._written
            raise
        except EOFError:
            return None
        except KeyboardInterrupt:
            if prompt().is_question:
                return CTRL_C
            if self._interrupted:
                return None
            self._interrupted = True
            print("(Ctrl-C once more or Ctrl-D leaves)")
            return ""
        finally:
            if not asking:
                self._draft = TypedText()
        self._interrupted = False
        self._read = self._written.edited(line)
        return line

    def refresh(self) -> None:
        """Redraw the prompt and the status line. A question puts the current input aside until it
        is answered.
        """
        asking = self._prompt().is_question
        if self._session.app.is_running and asking != self._history.is_paused:
            buffer = self._session.default_buffer
            if asking:
                self._draft, self._written = self._written, TypedText()
                buffer.reset()
            else:
                draft, self._draft = self._draft, TypedText()
                buffer.text, self._written = draft.text, draft
                buffer.cursor_position = len(buffer.text)
            self._history.is_paused = asking
            self._session.app.erase_when_done = not asking  # unless it is sent, nobody asked for it
        self._session.app.invalidate()

    def _edited(self, buffer: Buffer) -> None:
        self._written = self._written.edited(buffer.text)

    def _paste(self, buffer: Buffer, text: str) -> None:
        written = self._written.edited(buffer.text).inserted(buffer.cursor_position, text)
        buffer.insert_text(text)
        self._written = written

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """Suppress the echo while nothing is read. Keys pressed meanwhile are read later,
        unchanged, including those before a Ctrl-C.
        """
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        quiet = [*before]
        quiet[0] &= ~termios.ICRNL
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        # Otherwise the terminal discards the typed-ahead input at Ctrl-C.
        quiet[3] |= termios.NOFLSH
        termios.tcsetattr(descriptor, termios.TCSADRAIN, quiet)
        try:
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def history_in(path: Path, clock: Clock) -> InputHistory:
    """Return the history stored in a file that only its owner may read; a history that is not
    stored if the file cannot be opened. A file beyond `_LONGEST_HISTORY` is cut to its newer half.
    """
    try:
        ensure_private_dir(path.parent)
        with folder_lock(path.parent), open(_private(path), "r+b") as file:
            text = file.read()
            if len(text) > _LONGEST_HISTORY:
                file.seek(0)
                file.write(text[max(0, text.find(b"\n# ", len(text) // 2)) :])
                file.truncate()
    except OSError:
        return InputHistory(Path(os.devnull), clock)
    return InputHistory(path, clock)


def _private(path: Path) -> int:
    """Open the file so that only its owner may read it, and return the descriptor."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if path.is_file():
        os.fchmod(descriptor, 0o600)
    return descriptor


def _keys(paste: Callable[[Buffer, str], None]) -> KeyBindings:
    """Return the chat's key bindings. During a history search (Ctrl-R) the library's own apply:
    Enter accepts the match, Ctrl-C ends the search.
    """
    keys = KeyBindings()
    typing = ~is_searching

    @keys.add(Keys.BracketedPaste, filter=typing)
    def insert(event: KeyPressEvent) -> None:
        paste(event.current_buffer, event.data.replace("\r\n", "\n").replace("\r", "\n"))

    @keys.add("enter", filter=typing)
    @keys.add("c-j", filter=typing)  # Enter, as the terminal sent it before raw mode
    def send(event: KeyPressEvent) -> None:
        event.app.erase_when_done = False
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=typing)
    @keys.add("escape", "c-j", filter=typing)
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c", filter=typing)
    def clear(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.text = ""  # so that whoever follows the text hears of it
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    @keys.add("c-o", filter=typing)
    def expand(event: KeyPressEvent) -> None:
        if not event.current_buffer.text:
            event.current_buffer.text = "/expand"
            event.current_buffer.validate_and_handle()

    return keys


def _may_complete() -> bool:
    return may_complete(get_app().current_buffer.document.text_before_cursor)
