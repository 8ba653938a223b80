from __future__ import annotations

from pathlib import Path

import pytest

from agentd.app.config import Config, describe, load, reaching, read
from agentd.core.errors import ConfigError
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.reaching import check_installed, source

LOGIN = 'url = "https://x.example"\nauth = "oauth"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[mcp.servers.a]", "needs one of command"),
        ('[mcp.servers.a]\ncommand = ["x"]\nurl = "https://x.example"', "needs one of command"),
        ('[mcp.servers.a]\nurl = "ftp://x.example"', "url is no web address"),
        ('[mcp.servers.a_b]\ncommand = ["x"]', "'a_b' is no name of a server"),
        ('[mcp.servers.a]\ncommand = ["x"]\nenv = {"A B" = "1"}', "no name of a variable"),
        ('[mcp.servers.a]\ncommand = ["x"]\nenv = {A = "1"}\nsecrets = {A = "B"}', "in env and in"),
        ('[mcp.servers.a]\ncommand = ["x"]\nbearer = "T"', "bearer is for a url"),
        ('[mcp.servers.a]\nurl = "https://x.example"\ncwd = "/"', "are for a command"),
        ('[mcp.servers.a]\ncommand = ["x"]\nauth = "oauth"', "is for a url, in place of bearer"),
        (f'[mcp.servers.a]\n{LOGIN}bearer = "T"', "is for a url, in place of bearer"),
        ('[mcp.servers.a]\nurl = "http://x.example"\nauth = "oauth"', "begins with https://"),
        (f'[mcp.servers.a]\n{LOGIN}client_secret = "S"', "client_secret belongs to a client_id"),
        ('[mcp.servers.a]\nurl = "https://x.example"\nclient_id = "c"', 'are for auth = "oauth"'),
        ('[mcp.servers.a]\ncommand = ["x"]\ntools = {b = "maybe"}', "mcp.servers.a.tools.b"),
        ('[mcp.servers.a]\ncommand = ["x"]\nidel = "5m"', "mcp.servers.a.idel is no key"),
    ],
)
def test_what_is_wrong_with_a_server_is_told_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, text), {})
    assert words in caught.value.message


def test_what_may_be_secret_is_told_in_part(tmp_path: Path) -> None:
    text = '[mcp.servers.a]\ncommand = ["srv", "--key", "hush"]\nenv = {B = "hush"}\n'
    text += '[mcp.servers.b]\nurl = "https://x.example/hush?k=hush"\nbearer = "TOKEN"\n'
    loaded = read(written(tmp_path, text), {})
    (shown,) = [one.value for one in describe(loaded) if one.key == "mcp.servers"]
    assert "hush" not in str(shown)
    assert "srv" in str(shown)
    assert loaded.config.key_variables >= {"TOKEN"}
    assert [one.key for one in reaching(loaded.config)] == ["mcp.servers"]
    assert not reaching(Config())


def test_without_the_sdk_the_cure_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        check_installed("[mcp.servers]", lambda name: None)
    assert "extra `mcp`" in caught.value.message
    assert "agentd-daemon[mcp]" in caught.value.cure
    check_installed("[mcp.servers]")


def test_only_what_is_allowed_by_name_counts_as_vouched_for() -> None:
    one = McpServer(
        command=("x",), permission="allow", tools={"a": "allow", "b": "ask"}, silent=("c",)
    )
    assert one.vouched() == {"a", "c"}
    assert one.permission_of("d") == "allow"
    assert source(one) == source(one.model_copy(update={"silent": ()}))
    assert source(one) != source(one.model_copy(update={"command": ("y",)}))
