"""The recipes of docs/alerts.md: each is taken as it stands there; two arrive at servers on this
machine.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentd.app.assembly.alerting import build_targets
from agentd.app.config import load
from agentd.automation.alerts.apprise_sink import AppriseSink
from agentd.core.alert import Alert
from agentd.core.errors import ConfigError
from agentd.core.redaction import Redactor
from tests.alerts.counterparts import PASSWORD, a_mailbox, a_site

pytest.importorskip("apprise")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "alerts.md"
FENCES = re.findall(
    r"^```toml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)
RECIPES = {
    match[1]: text for text in FENCES if (match := re.search(r"\[alerts\.apprise\.(\w+)\]", text))
}
SECRETS = {  # of the form that each service gives them
    "NTFY_TOPIC": "nobody-guesses-this-8271",
    "MAIL_USER": "me",
    "TELEGRAM_TOKEN": "123456789:AAFalsefalsefalsefalsefalsefalse123",
    "MATRIX_TOKEN": "syt_false_token_0123456789",
    "PUSHOVER_USER": "u" * 30,
    "PUSHOVER_TOKEN": "a" * 30,
}
ALERT = Alert(7, datetime(2026, 5, 4, 10, 0, tzinfo=UTC), "The boiler is cold", "heartbeat")


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The secrets of all recipes, where these say that they stand."""
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".config" / "agentd" / "mail-password"
    file.parent.mkdir(parents=True)
    file.touch(0o600)
    file.write_text(PASSWORD)
    return {**os.environ, **SECRETS}


def sink(text: str, environ: dict[str, str]) -> AppriseSink:
    """What the file makes of a recipe."""
    file = Path(environ["HOME"]) / "config.toml"
    file.write_text(text)
    (built,) = build_targets(load(file, {}).alerts, environ, Redactor())
    return built


def test_the_page_has_a_recipe_for_each_service() -> None:
    assert list(RECIPES) == ["phone", "mail", "telegram", "matrix", "pushover"]


@pytest.mark.parametrize("name", RECIPES)
async def test_apprise_takes_the_address_of_each_recipe(name: str, environ: dict[str, str]) -> None:
    services = {"phone": "ntfy", "mail": "E-Mail"}
    told = await sink(RECIPES[name], environ).check()
    assert told.casefold() == services.get(name, name).casefold()


async def test_a_token_of_another_form_is_none(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="url cannot be used"):
        await sink(RECIPES["telegram"], {**environ, "TELEGRAM_TOKEN": "none"}).check()


async def test_the_recipe_for_ntfy_arrives(environ: dict[str, str]) -> None:
    async with a_site() as site:
        text = RECIPES["phone"].replace("ntfys://ntfy.sh", f"ntfy://127.0.0.1:{site.port}")
        await sink(text, environ).send(ALERT)
    ((_, body),) = site.requests
    assert (body["topic"], body["message"]) == (SECRETS["NTFY_TOPIC"], ALERT.text)


async def test_the_recipe_for_mail_arrives_but_for_the_encryption(environ: dict[str, str]) -> None:
    async with a_mailbox() as box:
        text = RECIPES["mail"].replace("mailtos://", "mailto://")
        text = text.replace("smtp.example.org:587", f"127.0.0.1:{box.port}")
        await sink(text, environ).send(ALERT)
    assert box.logins == [("me", PASSWORD)]
    assert [text.strip() for text in box.texts] == [ALERT.text]
