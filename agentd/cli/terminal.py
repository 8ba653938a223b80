"""The keyboard of a terminal."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout


class Terminal:
    """Reads lines; what is printed meanwhile appears above the line being typed."""

    def __init__(self) -> None:
        self._session: PromptSession[str] = PromptSession()
        self._interrupted = False

    async def read(self, prompt: Callable[[], str]) -> str | None:
        """The next line, None when the user wants to leave: Ctrl-D, or Ctrl-C twice."""
        try:
            with patch_stdout():
                line = await self._session.prompt_async(prompt)
        except EOFError:
            return None
        except KeyboardInterrupt:
            if self._interrupted:
                return None
            self._interrupted = True
            print("(Ctrl-C once more or Ctrl-D leaves)")
            return ""
        self._interrupted = False
        return line

    def refresh(self) -> None:
        """Show the prompt anew: it says something else now."""
        self._session.app.invalidate()
