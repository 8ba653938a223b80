"""A workspace on disk for each test."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agentd.core.turn import SessionKey, SessionKind
from agentd.core.workspace import Reader
from agentd.testing import FakeClock
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings

OWNER = Reader(SessionKey("main"), SessionKind.OWNER)
GROUP = Reader(SessionKey("group:family"), SessionKind.GROUP)
ISOLATED = Reader(SessionKey("isolated:job"), SessionKind.ISOLATED)


class Home:
    """The workspace's root, its clock and its settings."""

    def __init__(self, root: Path) -> None:
        self.root = root / "ws"
        self.root.mkdir()
        self.versions = root / "versions"
        self.clock = FakeClock()

    def put(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def files(self, scopes: Mapping[str, Path] | None = None, **settings: object) -> Files:
        return Files(
            self.root, WorkspaceSettings(**settings), self.clock, scopes or {}, self.versions
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def owner() -> Reader:
    return OWNER


@pytest.fixture
def group() -> Reader:
    return GROUP


@pytest.fixture(params=[GROUP, ISOLATED], ids=["group", "isolated"])
def stranger(request: pytest.FixtureRequest) -> Reader:
    return request.param


@pytest.fixture
def scope(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Makes another workspace with these files."""

    def make(files: Mapping[str, str]) -> Path:
        root = tmp_path / "other"
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root

    return make
