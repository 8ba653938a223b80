"""The log: JSON lines for the journal or a file, readable lines on a terminal, without secrets.

Every record is rendered and redacted where it is made, and written by a thread, so that a slow disk
or a blocked pipe never stops the daemon. Records of libraries are included from WARNING on.
"""

from __future__ import annotations

import json
import logging
import operator
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any, Literal, TextIO

import structlog
from msgspec import Struct
from pydantic import Field
from structlog.typing import EventDict, Processor, WrappedLogger

from agentd.core.erasure import Erasure
from agentd.core.errors import ConfigError
from agentd.core.paths import expanded, read_regular, write_private
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor, secret_values
from agentd.core.settings import ActsOutside, FilePath, Settings

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}  # as in syslog(3)
_OURS = "agentd"


class LogSettings(Settings):
    """The daemon's log. Under systemd it goes to the journal, on a terminal to the screen."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="the least important events to log: debug, info, warning or error"
    )
    file: Annotated[FilePath, ActsOutside("is written to")] = Field(
        "", description="the log file in all other cases; empty: logs/agentd.log with the state"
    )
    max_bytes: int = Field(
        5_000_000, ge=10_000, description="the file is rotated before it grows beyond this"
    )
    redact_messages: Annotated[
        bool, ActsOutside("lets keys be kept as they were said", when=operator.not_)
    ] = Field(
        True,
        description=(
            "replace keys in published formats by [secret:KIND] in what agentd keeps of "
            "messages, notes and the index"
        ),
    )
    keep: int = Field(3, ge=1, le=100, description="how many rotated files are kept")


def file_of(settings: LogSettings, state_dir: Path) -> Path:
    """Return the path of the log file, which is used if neither systemd nor a terminal takes the
    lines.
    """
    if settings.file:
        return expanded(settings.file)
    return state_dir / "logs" / "agentd.log"


class OpenLog(Struct, frozen=True):
    """The log in use: where its lines go, and what can be changed.

    Secrets that become known later are added to `redactor`. `file` is None if the lines go to
    standard error, which is the journal if `is_journal`. `rewrite` applies a function to all lines
    of the file and of its rotated parts, and returns how many lines changed.
    """

    redactor: Redactor
    file: Path | None
    is_journal: bool = False
    rewrite: Callable[[Callable[[str], str]], int] | None = None

    def erase(self, erasure: Erasure) -> int:
        """Mask what the erasure finds in the lines of the file and of its rotated parts; return how
        many lines changed. The journal cannot be changed. Blocks. Raises OSError.
        """
        return self.rewrite(partial(_masked, erasure=erasure)) if self.rewrite else 0

    def set_level(self, level: str) -> None:
        """Log records of this level or above from now on."""
        number = _LEVELS[level]
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))
        logging.getLogger(_OURS).setLevel(number)


@contextmanager
def open_log(
    settings: LogSettings,
    state_dir: Path,
    clock: Clock,
    environ: Mapping[str, str],
    stream: TextIO,
) -> Iterator[OpenLog]:
    """Log until the block ends. `stream` is standard error. Raises OSError if the log file cannot
    be opened, or ConfigError if `[log] file` names it.
    """
    redactor = Redactor(*secret_values(environ), formats=settings.redact_messages)
    target, last = _target(settings, state_dir, environ, stream)
    written = target if isinstance(target, _PrivateFile) else None
    file = Path(written.baseFilename) if written else None
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        _Timestamp(clock),
        structlog.processors.format_exc_info,
    ]
    formatter = structlog.stdlib.ProcessorFormatter
    records: SimpleQueue[logging.LogRecord] = SimpleQueue()
    handler = QueueHandler(records)
    handler.addFilter(_is_wanted)
    after: list[Processor] = [formatter.remove_processors_meta, _Redaction(redactor), *last]
    handler.setFormatter(formatter(foreign_pre_chain=before, processors=after))
    structlog.configure(
        processors=[*before, formatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[settings.level]),
        logger_factory=lambda *_: logging.getLogger(_OURS),
    )
    try:
        with _installed(handler, _LEVELS[settings.level], QueueListener(records, target)):
            is_journal = _is_journal(stream, environ)
            yield OpenLog(redactor, file, is_journal, written.rewrite if written else None)
    finally:
        target.close()
        structlog.reset_defaults()


@contextmanager
def _installed(handler: logging.Handler, level: int, listener: QueueListener) -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger(_OURS)
    listener.start()
    root.addHandler(handler)
    ours.setLevel(level)
    try:
        yield
    finally:
        ours.setLevel(logging.NOTSET)
        root.removeHandler(handler)
        listener.stop()


def _target(
    settings: LogSettings, state_dir: Path, environ: Mapping[str, str], stream: TextIO
) -> tuple[logging.Handler, list[Processor]]:
    """Return the handler that writes the lines, and the processors that render them."""
    as_json: Processor = structlog.processors.JSONRenderer(sort_keys=False)
    if _is_journal(stream, environ):
        return logging.StreamHandler(stream), [_Priority(as_json)]
    if "NOTIFY_SOCKET" in environ:
        return logging.StreamHandler(stream), [as_json]
    if stream.isatty():
        plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        return logging.StreamHandler(stream), [plain]
    path = file_of(settings, state_dir)
    try:
        file = _PrivateFile(
            path, maxBytes=settings.max_bytes, backupCount=settings.keep, encoding="utf-8"
        )
    except OSError as error:
        if settings.file:
            told = f"[log] file: {path} cannot be opened: {error.strerror}"
            raise ConfigError(told, cure="name a file that you may write") from None
        raise
    return file, [as_json]


def _is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether `stream` is the journal's socket. Children of a service inherit JOURNAL_STREAM, so
    only an equal device and inode prove it.
    """
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def _is_wanted(record: logging.LogRecord) -> bool:
    """Whether to log a record. Libraries are logged from WARNING on, whatever level they set: below
    it they log the headers of requests.
    """
    return record.name == _OURS or record.levelno >= logging.WARNING


class _PrivateFile(RotatingFileHandler):
    """A rotated file that only its owner can read, whatever the umask is. One that was moved or
    removed while it is open is made anew.
    """

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Of a pipe that nobody reads, opening fails instead of waiting for a reader.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(self.baseFilename, flags, 0o600)
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "a", encoding=self.encoding)

    def emit(self, record: logging.LogRecord) -> None:
        if self.stream is not None and not _stands_at(self.baseFilename, self.stream):
            self.stream.close()
            self.stream = None  # opened anew by what follows
        super().emit(record)

    def rewrite(self, change: Callable[[str], str]) -> int:
        """Apply `change` to all lines of the file and of its rotated parts; records wait meanwhile.
        Return how many lines changed.
        """
        path = Path(self.baseFilename)
        self.acquire()
        try:
            if self.stream is not None:
                self.stream.close()
            try:
                parts = (path, *path.parent.glob(f"{path.name}.[0-9]*"))
                return sum(_rewritten(part, change) for part in parts if part.exists())
            finally:
                self.stream = self._open()
        finally:
            self.release()


def _stands_at(path: str, stream: TextIO) -> bool:
    try:
        return os.path.samestat(Path(path).stat(), os.fstat(stream.fileno()))
    except OSError:
        return False


def _rewritten(path: Path, change: Callable[[str], str]) -> int:
    old = read_regular(path).decode("utf-8", "surrogateescape").split("\n")
    new = [change(line) for line in old]
    count = sum(one != other for one, other in zip(old, new, strict=True))
    if count:
        write_private(path, "\n".join(new).encode("utf-8", "surrogateescape"))
    return count


def _masked(line: str, erasure: Erasure) -> str:
    if not erasure.glimpsed(line):
        return line
    try:
        data = json.loads(line)
    except ValueError:
        return erasure.masked(line)
    masked = erasure.within(data)
    return line if masked == data else json.dumps(masked)


class _Timestamp:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event["at"] = self._clock.now().isoformat(timespec="milliseconds")
        return event


class _Redaction:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        first = {name: event[name] for name in ("at", "level", "event") if name in event}
        cleaned: MutableMapping[str, Any] = self._redactor.value({**first, **event})
        return cleaned


class _Priority:
    """Puts the syslog priority in front of the line, where the journal expects it."""

    def __init__(self, render: Processor) -> None:
        self._render = render

    def __call__(self, logger: WrappedLogger, name: str, event: EventDict) -> str:
        priority = _PRIORITIES.get(str(event.get("level")), 6)
        return f"<{priority}>{self._render(logger, name, event)!s}"
