"""agentd's own secret keys, for hashes that nobody else can make. Blocking."""

from __future__ import annotations

import secrets
from pathlib import Path

from agentd.core.errors import StorageError
from agentd.core.paths import cure_of, ensure_private_dir, read_regular, write_private

KEY_BYTES = 32


_FORGOTTEN = "take it from a backup; without it, what was forgotten may be learnt again: delete it"


def load_key(file: Path, cure: str = _FORGOTTEN) -> bytes:
    """Return the key in the file; create the file at the first use. Raises StorageError; `cure` is
    its advice for a file that does not contain a valid key.
    """
    try:
        ensure_private_dir(file.parent)
        if not file.exists():
            write_private(file, secrets.token_bytes(KEY_BYTES))
        key = read_regular(file)
    except OSError as error:
        msg = f"{file} cannot be kept: {error.strerror}"
        raise StorageError(msg, cure=cure_of(error)) from error
    if len(key) != KEY_BYTES:
        raise StorageError(f"{file} is damaged", cure=cure)
    return key
