"""The chain of the graph: a tamper-evident log of what happens to the graph, if one is kept.

Each entry is hashed together with the one before. Entries hold no content, only salted digests, so
erasing content leaves the chain valid.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Protocol

import structlog
from msgspec import Struct

from agentd.core.errors import AgentdError, GraphError, StorageCorrupt, StorageError, WorkspaceError
from agentd.core.failpoints import hit
from agentd.core.graph import SIZE, Digest, Record
from agentd.core.health import Problem
from agentd.core.ports import Clock
from agentd.core.workspace import CHAIN_HEAD_PATH, CHAIN_PATH
from agentd.zero.formats.writing import write
from agentd.zero.hashes import stamp

log = structlog.get_logger()


LOG = CHAIN_PATH
HEAD = CHAIN_HEAD_PATH

_KIND = re.compile(r"[a-z_]{1,32}")
_ENTRY = re.compile(
    r"(([1-9][0-9]{0,11}) [0-9TZ:.-]{20,27} [a-z_]{1,32} ([0-9a-f]{64})) ([0-9a-f]{64})\n"
)
_HEAD = re.compile(r"(0|[1-9][0-9]{0,11}) ([0-9a-f]{64})\n")


class EntryHash(Digest, frozen=True):
    """Identifies an entry by its content and all entries before it."""


START = EntryHash(bytes(SIZE))  # precedes the first entry


class ChainFiles(Protocol):
    """The files of the chain, by path in the workspace. What a method did is durable when it
    returns; any may raise WorkspaceError or StorageError.
    """

    async def read(self, path: str) -> bytes | None:
        """Return the whole file; None if there is none."""

    async def append(self, path: str, data: bytes) -> None:
        """Append the bytes to the file; a crash may leave a part of them."""

    async def replace(self, path: str, data: bytes) -> None:
        """Replace the file by these bytes, whole or not at all."""


class JournalReceipt(Struct, frozen=True):
    """Proves later that an entry is about some content. `salt` is stored with the content and
    erased with it: then nobody can find out what the entry was about, not even by guessing.
    """

    number: int
    salt: bytes


class Verdict(Struct, frozen=True):
    """The result of checking the chain. `bad` is the number of the first entry that was changed or
    is missing; 0 means the head record, None that all is well.
    """

    entries: int
    bad: int | None = None
    why: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether nothing was changed or cut off."""
        return self.bad is None

    def check(self) -> None:
        """Raise StorageCorrupt, naming the place, unless the chain is sound."""
        if not self.is_sound:
            what = f"entry {self.bad} of {LOG}" if self.bad else HEAD
            raise StorageCorrupt(
                f"the chain of the graph is not as it was written: {what}: {self.why}",
                cure=(
                    f"put {LOG} and {HEAD} back from a backup, or move both away "
                    "to begin a new chain"
                ),
            )


class JournalChain:
    """The log, and its head record, which holds the number of entries and the hash of the last."""

    def __init__(
        self,
        files: ChainFiles,
        clock: Clock,
        salt: Callable[[], bytes] = lambda: secrets.token_bytes(SIZE),
    ) -> None:
        self._files = files
        self._clock = clock
        self._salt = salt
        self._lock = asyncio.Lock()
        self._end: tuple[int, EntryHash] | None = None  # None: the files have to be read

    async def append(self, kind: str, content: bytes) -> JournalReceipt:
        """Add an entry about the content; durable when this returns. `kind` is a word of lower-case
        letters and `_`, such as `inserted`.

        The remains of an entry that a crash interrupted are removed first. Raises StorageCorrupt,
        and adds nothing, when the chain is not sound.
        """
        if not _KIND.fullmatch(kind):
            raise GraphError(f"{kind[:40]!r} is no kind of entry", cure="use small letters and _")
        async with self._lock:
            if self._end and await self._files.read(HEAD) != _head(*self._end):
                self._end = None  # the file was restored, or moved away to begin a new chain
            count, last = self._end or await self._recovered()
            self._end = None
            salt = self._salt()
            said = f"{count + 1} {stamp(self._clock.now())} {kind} {digest(content, salt)}"
            last = _entry_hash(last, said)
            await self._files.append(LOG, f"{said} {last}\n".encode())
            hit("graph.chained")
            await self._files.replace(HEAD, _head(count + 1, last))
            self._end = count + 1, last
            return JournalReceipt(count + 1, salt)

    async def verify(self) -> Verdict:
        """Check the present files: return whether the chain is as it was written."""
        async with self._lock:
            found = verify_chain(await self._files.read(LOG), await self._files.read(HEAD)).verdict
            if not found.is_sound:
                self._end = None
            return found

    async def proven(self, many: Sequence[tuple[bytes, JournalReceipt]]) -> list[bool]:
        """Return for each content whether the entry of its receipt is about it. Raises
        StorageCorrupt when the chain is not sound.
        """
        async with self._lock:
            found = verify_chain(await self._files.read(LOG), await self._files.read(HEAD))
            found.verdict.check()
        return [_is_of(content, receipt, found.digests) for content, receipt in many]

    async def _recovered(self) -> tuple[int, EntryHash]:
        """Make the files agree, and return the number and hash of the last entry."""
        log = await self._files.read(LOG)
        found = verify_chain(log, await self._files.read(HEAD))
        found.verdict.check()
        if log is not None and found.whole < len(log):
            await self._files.replace(LOG, log[: found.whole])
        if found.is_behind:
            await self._files.replace(HEAD, _head(found.verdict.entries, found.last))
        return found.verdict.entries, found.last


class JournalState(Struct, frozen=True):
    """The state of the files. `whole` is the length in bytes of the complete entries; `is_behind`:
    the head record has still to be brought up to the last entry.
    """

    verdict: Verdict
    last: EntryHash = START
    digests: Sequence[str] = ()
    whole: int = 0
    is_behind: bool = False


def digest(content: bytes, salt: bytes) -> str:
    """Return the digest of content in an entry: HMAC-SHA256 (RFC 2104) with the salt as key."""
    return hmac.digest(salt, content, "sha256").hex()


def verify_chain(log: bytes | None, head: bytes | None) -> JournalState:
    """Check the chain in these bytes. What follows the entry in the head record is left by a crash,
    and no fault: complete entries that fit count, the rest does not.
    """
    named = _head_of(log, head)
    if isinstance(named, Verdict):
        return JournalState(named)
    count, end = named
    last, whole = START, 0
    digests: list[str] = []
    for number, line in enumerate((log or b"").splitlines(keepends=True), start=1):
        entry = _ENTRY.fullmatch(line.decode("ascii", "replace"))
        said = entry[1] if entry else ""
        after = _entry_hash(last, said)
        why = ""
        if entry is None or int(entry[2]) != number:
            why = "it cannot be read"
        elif after.hex != entry[4]:
            why = "it is not what its hash says, or another entry stood before it"
        elif number == count and after != end:
            why = "it is not the one that the head record names"
        if why and number <= count:
            return JournalState(Verdict(number - 1, number, why))
        if entry is None or why:
            break
        last, whole = after, whole + len(line)
        digests.append(entry[3])
    if len(digests) < count:
        missing = len(digests) + 1
        return JournalState(Verdict(len(digests), missing, "it is missing: the log was cut off"))
    is_behind = head is None or len(digests) > count
    return JournalState(Verdict(len(digests)), last, digests, whole, is_behind)


def _head_of(log: bytes | None, head: bytes | None) -> tuple[int, EntryHash] | Verdict:
    """Return the number of entries and the hash of the last, from the head record; a Verdict if it
    is missing or unreadable.
    """
    if head is None:
        return Verdict(0, 0, "the head record is missing") if log else (0, START)
    found = _HEAD.fullmatch(head.decode("ascii", "replace"))
    if found is None or (found[1] == "0" and found[2] != START.hex):
        return Verdict(0, 0, "the head record cannot be read")
    return int(found[1]), EntryHash.from_hex(found[2])


def _entry_hash(before: EntryHash, said: str) -> EntryHash:
    return EntryHash(sha256(before.value + said.encode()).digest())


def _head(count: int, last: EntryHash) -> bytes:
    return f"{count} {last}\n".encode()


def _is_of(content: bytes, receipt: JournalReceipt, digests: Sequence[str]) -> bool:
    if not 0 < receipt.number <= len(digests):
        return False
    return hmac.compare_digest(digests[receipt.number - 1], digest(content, receipt.salt))


_RECEIPT = re.compile(r"([1-9][0-9]{0,11}) ([0-9a-f]{64})")


class GraphJournal:
    """The journal of the graph; without a chain nothing is entered. A chain that is broken or
    cannot be written holds up nothing, but is reported by `problems`.
    """

    def __init__(self, chain: JournalChain | None = None) -> None:
        self._chain = chain
        self._failure: AgentdError | None = None

    @property
    def is_kept(self) -> bool:
        """Whether there is a chain."""
        return self._chain is not None

    async def enter(self, kind: str, content: bytes) -> str:
        """Enter that this happens to the content; durable when it returns. Return the receipt,
        which has to be stored with the content and erased with it: "" if nothing could be entered.
        """
        if self._chain is None:
            return ""
        try:
            receipt = await self._chain.append(kind, content)
        except (StorageError, WorkspaceError) as error:
            self._fail(error)
            return ""
        self._failure = None
        return f"{receipt.number} {receipt.salt.hex()}"

    async def verdict(self) -> Verdict:
        """Check the chain. Raises StorageError, WorkspaceError."""
        if self._chain is None:
            return Verdict(0)
        found = await self._chain.verify()
        try:
            found.check()
        except StorageError as error:
            self._fail(error)
        else:
            self._failure = None
        return found

    async def look(self) -> None:
        """Check the chain only in order to report problems; raises nothing of that kind."""
        try:
            await self.verdict()
        except (StorageError, WorkspaceError) as error:
            self._fail(error)

    async def changed(self, receipts: Sequence[tuple[str, str, Record]]) -> tuple[str, ...]:
        """Return the tellers whose records no longer match their entries; `receipts` are (teller,
        receipt, record). Raises StorageCorrupt when the chain is not sound, WorkspaceError.
        """
        if self._chain is None:
            return ()
        read = await asyncio.to_thread(_contents, [one[1:] for one in receipts])
        proven = await self._chain.proven(read)
        found = (one[0] for one, is_so in zip(receipts, proven, strict=True) if not is_so)
        return tuple(dict.fromkeys(found))

    def problems(self) -> tuple[Problem, ...]:
        """Return that the chain is broken or cannot be written; empty if neither."""
        if self._failure is None:
            return ()
        text = f"what happens to the graph is not entered in its chain: {self._failure.message}"
        return (Problem("graph_chain", text, self._failure.cure),)

    def _fail(self, error: AgentdError) -> None:
        self._failure = error
        log.warning("graph_chain_failed", reason=error.reason)


def _receipt(text: str) -> JournalReceipt:
    """Parse a receipt of `enter`; any other text gives one that proves nothing."""
    found = _RECEIPT.fullmatch(text)
    return (
        JournalReceipt(int(found[1]), bytes.fromhex(found[2])) if found else JournalReceipt(0, b"")
    )


def _contents(many: Sequence[tuple[str, Record]]) -> list[tuple[bytes, JournalReceipt]]:
    return [(write(record).encode(), _receipt(receipt)) for receipt, record in many]
