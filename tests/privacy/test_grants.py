"""A lasting yes ends with what it was given for."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentd.core.tool import Decision
from agentd.core.turn import MAIN
from agentd.testing import Answers, FakeClock, ScriptedProvider, call
from agentd.workspace.files import Files
from agentd.workspace.workspace_settings import WorkspaceSettings
from tests.engine.conftest import World


class RealFiles(World):
    """An engine over a workspace on the disk, with a model that does what it is told."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "state.db")
        self.root = folder / "ws"
        self.root.mkdir()
        (self.root / "BOOTSTRAP.md").write_text("Who are you?\n")
        self.workspace = Files(self.root, WorkspaceSettings(), FakeClock(), {}, folder / "versions")

    async def write(self, content: str, target: str) -> None:
        self.sent += 1
        self.provider.say(
            call("memory_write", f"w{self.sent}", content=content, target=target), "done"
        )
        await self.say("go on")

    def text(self, name: str) -> str:
        return (self.root / name).read_text()


@pytest.fixture
async def world(tmp_path: Path):
    made = RealFiles(tmp_path)
    assert isinstance(made.provider, ScriptedProvider)
    await made.start()
    yield made
    await made.stop()


async def test_a_yes_of_one_bootstrap_is_not_revived_by_another(world) -> None:
    world.answers = Answers(Decision.ALWAYS, default=Decision.DENY)
    await world.stop()
    await world.start()
    await world.write("Kind.", "SOUL.md")
    await world.write("Very kind.", "SOUL.md")
    assert len(world.answers.questions) == 1, "the first yes covered the second write"
    (world.root / "BOOTSTRAP.md").unlink()
    await world.write("Cruel.", "SOUL.md")
    (world.root / "BOOTSTRAP.md").write_text("Who are you now?\n")
    await world.write("Cruel.", "SOUL.md")
    assert len(world.answers.questions) == 3
    assert world.text("SOUL.md") == "Kind.\nVery kind.\n"


async def test_a_single_yes_to_a_new_bootstrap_revives_nothing(world) -> None:
    given = (Decision.ALWAYS, Decision.ONCE, Decision.ONCE)
    world.answers = Answers(*given, default=Decision.DENY)
    await world.stop()
    await world.start()
    await world.write("Kind.", "SOUL.md")
    await world.write("", "bootstrap")
    assert not (world.root / "BOOTSTRAP.md").exists()
    await world.write("Who are you now?", "bootstrap")
    assert (world.root / "BOOTSTRAP.md").exists()
    await world.write("Cruel.", "SOUL.md")
    assert len(world.answers.questions) == 4
    assert world.text("SOUL.md") == "Kind.\n"


async def test_a_yes_lasts_while_the_agent_works_on_its_bootstrap(world) -> None:
    world.answers = Answers(Decision.ALWAYS, Decision.ALWAYS, default=Decision.DENY)
    await world.stop()
    await world.start()
    await world.write("Kind.", "SOUL.md")
    await world.write("- asked for the name", "bootstrap")
    await world.write("- asked for the zone", "bootstrap")
    await world.write("Very kind.", "SOUL.md")
    assert len(world.answers.questions) == 2
    assert world.text("SOUL.md") == "Kind.\nVery kind.\n"


@pytest.mark.parametrize("end", ["start_over", "delete"])
async def test_a_yes_ends_with_its_conversation(world, end: str) -> None:
    world.answers = Answers(Decision.ALWAYS, default=Decision.DENY)
    await world.stop()
    await world.start()
    await world.write("Kind.", "SOUL.md")
    await getattr(world.requests, end)(MAIN)
    await world.write("Cruel.", "SOUL.md")
    assert len(world.answers.questions) == 2
    assert world.text("SOUL.md") == "Kind.\n"
