"""Files of others, read whole: regular ones alone, and no more of them than fits."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agentd.errors import InvalidRequest


def read_regular(path: Path, most: int) -> bytes:
    """The file's bytes. Raises InvalidRequest for what is no regular file, cannot be read, or has more
    than `most` bytes. Nobody waits for a pipe, and a device is not read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise InvalidRequest(f"{path} is no regular file", cure="name a file with text")
            data = file.read(most + 1) if found.st_size <= most else b""
    except OSError as error:
        raise InvalidRequest(
            f"{path} cannot be read: {error.strerror}", cure="make it readable for you"
        ) from error
    if found.st_size > most or len(data) > most:
        raise InvalidRequest(
            f"{path} is larger than {most:,} bytes", cure="split it, or take it over yourself"
        )
    return data
