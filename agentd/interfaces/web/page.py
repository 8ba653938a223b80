"""Turns fetched web content into text: HTML into markdown, plain texts as they are; of other types
only the name is told.

HTML is parsed in a separate process without agentd's environment and with limits on time and
memory: a stranger's input must not reach the daemon's memory through a C parser, and a parser that
does not return is killed.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agentd.interfaces.web.fetcher import Fetched
from agentd.interfaces.web.web_faults import WebFault

COMMAND = (sys.executable, "-P", "-m", "agentd.interfaces.web.reader_main")

_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS = re.compile(r"text/.*|application/(.*\+)?(json|xml|yaml|toml)|application/x-ndjson")
_ANSWER = 5_000_000  # bytes that the process may write
_IN_PAGE = re.compile(rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
_HEAD = 2048  # bytes in which a page declares its charset
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The charset names of the web, with Python's codecs. Other codecs are not used: some never end.
_CHARSETS = {
    **{name: name for name in ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "koi8-r", "koi8-u")},
    **{name: name for name in ("big5", "euc-jp", "euc-kr", "gb18030", "gbk", "iso-2022-jp")},
    **{f"iso-8859-{n}": f"iso-8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"windows-{n}": f"cp{n}" for n in (874, *range(1250, 1259))},
    **dict.fromkeys(("utf8", "unicode-1-1-utf-8"), "utf-8"),
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "latin5"), "cp1254"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("gb2312", "gb_2312-80"), "gbk"),
    "macintosh": "mac_roman",
    "ks_c_5601-1987": "cp949",
    "ibm866": "cp866",
}


class WebPage(Struct, frozen=True):
    """A page as it is shown to the model. `note` says, in agentd's words, what is left out."""

    url: str
    title: str
    text: str
    note: str = ""


def charset_of(body: bytes, said: str) -> str:
    """Return the codec of a text: by its byte order mark, else the header's charset `said`, else
    the one that the page declares; otherwise UTF-8 if the body decodes, or cp1252.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return codec
    inside = _IN_PAGE.search(body[:_HEAD])
    for name in (said, inside[1].decode("ascii", "replace").lower() if inside else ""):
        if found := _CHARSETS.get(name.strip("\"'")):
            return found
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        # The body was cut within a character.
        return "utf-8" if error.end >= len(body) else "cp1252"
    return "utf-8"


class PageReader:
    """Turns fetched content into text."""

    def __init__(
        self,
        environ: Mapping[str, str],
        folder: Path,
        seconds: float,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """Of `environ` the parser process gets only PATH and PYTHONPATH; it runs in `folder`, for
        at most `seconds`.
        """
        self._environ = {name: environ[name] for name in ("PATH", "PYTHONPATH") if name in environ}
        self._folder = folder
        self._seconds = seconds
        self._command = tuple(command)

    async def page(self, fetched: Fetched) -> WebPage:
        """Return the content as text; another media type than text gives an empty page with a note.
        Raises WebFault if the page cannot be parsed.
        """
        kind = fetched.media_type
        if kind not in _PAGES and not _TEXTS.fullmatch(kind):
            what = kind or "something that does not say what it is"
            return WebPage(fetched.url, "", "", f"It is {what}, which is not shown.")
        charset = charset_of(fetched.body, fetched.charset)
        if kind in _PAGES:
            try:
                async with asyncio.timeout(self._seconds):
                    title, text = await self._read(fetched, charset)
            except TimeoutError:
                raise WebFault("timeout", "its text was not found in time") from None
        else:
            title, text = "", fetched.body.decode(charset, "replace").removeprefix("\ufeff")
        note = "It holds no text that can be read without a browser." if not text.strip() else ""
        if fetched.is_cut:
            note = f"{note} It is longer: only its beginning was read.".strip()
        return WebPage(fetched.url, title, text, note)

    async def _read(self, fetched: Fetched, charset: str) -> tuple[str, str]:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=self._environ,
            cwd=self._folder,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            order = {"url": fetched.url, "charset": charset, "seconds": self._seconds}
            with suppress(ConnectionError):  # the process has ended: its output tells why
                process.stdin.write(json.dumps(order).encode() + b"\n" + fetched.body)
                await process.stdin.drain()
                process.stdin.close()
            said = bytearray()
            while piece := await process.stdout.read(65_536):
                said += piece
                if len(said) > _ANSWER:
                    raise _unreadable()
            await process.wait()
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return _answer(bytes(said))


def _answer(said: bytes) -> tuple[str, str]:
    try:
        found = json.loads(said)
        return str(found["title"])[:300], str(found["text"])
    except (ValueError, KeyError, TypeError):
        raise _unreadable() from None


def _unreadable() -> WebFault:
    return WebFault("unreadable", "the page could not be taken apart")
