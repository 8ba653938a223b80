"""Files that are written whole are on the disk before they take their place, and their place is
after it.

strace writes down in which order a process asks the system for it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="not installed: strace")

WRITERS = {
    "a private file": """
from agentd.core.paths import write_private
write_private(folder / "it", "tea")
""",
    "a note": """
from agentd.workspace.folder import Folder
Folder(folder).replace(["it"], b"tea")
""",
    "what a command is told to write": """
from agentd.app.cli.text_files import write_text
write_text(folder / "it", "tea")
""",
    "what a tool server has said": """
from agentd.interfaces.mcp.catalogue import Catalogue
from agentd.interfaces.mcp.catalogue import ToolListing
Catalogue(folder, "it", "").keep(ToolListing(instructions="tea"))
""",
    "the tokens of a day": """
import asyncio
from agentd.memory.index.embedding.daily import DailyTokens
from agentd.testing import FakeClock
asyncio.run(DailyTokens(folder / "it", 100, FakeClock()).take(7))
""",
    "an image": """
import asyncio
from agentd.storage.blobs import FileBlobs
async def referred():
    return ()
async def main():
    async with FileBlobs(folder, referred).keep([bytes.fromhex("89504e470d0a1a0a") + b"tea"]):
        pass
asyncio.run(main())
""",
}
_RENAME = re.compile(r'rename\w*\((?:\S+<(?P<dir>[^>]*)>, )?"(?P<part>[^"]*)", (?:\S+, )?"[^"]*"')


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_synced_before_it_is_renamed_and_its_folder_after_that(
    tmp_path: Path, writer: str
) -> None:
    folder, trace = tmp_path / "folder", tmp_path / "trace"
    folder.mkdir()
    code = f"from pathlib import Path\nfolder = Path({str(folder)!r})\n{WRITERS[writer]}"
    calls = "trace=write,fsync,fdatasync,rename,renameat,renameat2"
    strace = ["strace", "-f", "-y", "-qq", "-e", "signal=none", "-e", calls, "-o", str(trace)]
    subprocess.run([*strace, sys.executable, "-c", code], check=True, timeout=60)
    done = [line for line in trace.read_text().splitlines() if str(folder) in line]
    (at,) = [number for number, line in enumerate(done) if _RENAME.search(line)]
    found = _RENAME.search(done[at])
    assert found is not None
    part = Path(found["dir"] or "") / found["part"]
    before = [line.split("(")[0].split()[-1] for line in done[:at] if f"<{part}>" in line]
    assert before in (["write", "fsync"], ["write", "fdatasync"])
    assert any("fsync(" in line and f"<{part.parent}>" in line for line in done[at + 1 :])
