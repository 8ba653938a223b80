"""The configuration is read whole or refused whole, with every mistake named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomli

from agentd.app.config import Config, describe, example, load, read, with_workspace
from agentd.app.config_text import toml
from agentd.core.errors import ConfigError
from agentd.core.paths import daemon_places

ROOT = Path(__file__).resolve().parent.parent


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(tmp_path: Path, text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load(write(tmp_path, text), environ)
    assert refused.value.exit_code == 78
    assert refused.value.cure
    return refused.value.message


def test_a_missing_file_means_all_defaults(tmp_path: Path) -> None:
    assert load(tmp_path / "absent.toml", {}) == Config()


def test_a_table_is_checked_by_the_file_that_it_is_in(tmp_path: Path) -> None:
    program = f"""
from pathlib import Path
from agentd.app.config import Config, load
from agentd.core.settings import Settings

kinds, found = [Settings], []
while kinds:
    found += (inner := kinds.pop().__subclasses__())
    kinds += inner
assert len(found) > 15
# One that names what stands below it would never know the marks of its fields.
assert all(kind.__pydantic_fields_complete__ for kind in found)
load(Path({str(tmp_path / "absent.toml")!r}), {{}})
print(*(kind.__name__ for kind in found if kind.__pydantic_complete__))
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Config"], "a validator more for each start"


def test_the_example_file_is_in_step_with_the_code() -> None:
    assert (ROOT / "config.example.toml").read_text(encoding="utf-8") == example(), "make config"


def test_the_example_holds_every_key_with_its_default(tmp_path: Path) -> None:
    text = example()
    assert load(write(tmp_path, text), {}) == Config()
    keys = {setting.key for setting in describe(read(tmp_path / "config.toml", {}))}
    assert len(keys) > 10
    for key in keys:
        name = key.rpartition(".")[2]
        assert f"\n{name} = " in text or f"\n# {name} =" in text, key


def test_a_search_in_which_nothing_counts_is_refused(tmp_path: Path) -> None:
    text = "[memory_search]\nvector_weight = 0.0\n"
    assert "both 0" in refusal(tmp_path, f"{text}text_weight = 0.0\n")
    assert load(write(tmp_path, text), {}).memory_search.text_weight


def test_every_key_is_explained_in_one_line() -> None:
    previous = ""
    for line in example().splitlines():
        if " = " in line and not line.startswith(("#", " ")):
            assert previous.startswith("# "), line
            assert "None" not in previous, line
        previous = line


def test_the_file_wins_over_the_default_and_the_environment_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, '[log]\nlevel = "debug"\nkeep = 5\n')
    loaded = read(path, {"AGENTD__LOG__KEEP": "7", "AGENTD_HOME": "/nowhere"})
    assert (loaded.config.log.level, loaded.config.log.keep) == ("debug", 7)
    found = {setting.key: (setting.value, setting.origin) for setting in describe(loaded)}
    assert found["log.level"] == ("debug", "file")
    assert found["log.keep"] == (7, "environment")
    assert found["log.max_bytes"] == (5_000_000, "default")


def test_all_mistakes_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    told = refusal(
        tmp_path,
        '# comment\n[log]\nlevle = "info"\nkeep = 0\n\n[lgo]\nx = 1\n[agent]\ntimezone = "Mars"\n',
    )
    assert "4 mistakes" in told
    assert "line 3: log.levle is no key that agentd knows; did you mean 'level'?" in told
    assert "line 4: log.keep input should be greater than or equal to 1, got 0" in told
    assert [line[:9].strip() for line in told.splitlines()[1:]] == [
        "line 3:",
        "line 4:",
        "line 6:",
        "line 9:",
    ]
    assert "line 6: lgo is no table that agentd knows; did you mean 'log'?" in told
    assert "line 9: agent.timezone 'Mars' is no known time zone" in told


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
def test_a_number_that_is_none_is_a_mistake(tmp_path: Path, number: str) -> None:
    told = refusal(tmp_path, f'[budget.prices."m"]\ninput = {number}\noutput = 15.0\n')
    assert "line 2: budget.prices.m.input input should be" in told
    assert "budget.daily_usd input should be" in refusal(
        tmp_path, f"[budget]\ndaily_usd = {number}\n"
    )


def test_a_key_in_the_wrong_table_is_sent_to_the_right_one(tmp_path: Path) -> None:
    told = refusal(tmp_path, "[provider]\nthink_tags = true\n")
    assert "it belongs to [provider.capabilities]" in told
    assert "it belongs to [agent]" in refusal(tmp_path, '[log]\ntimezone = "UTC"\n')


@pytest.mark.parametrize("name", ["daily_tokens", "tokens"])
def test_a_key_is_looked_for_in_all_tables_by_its_whole_name(tmp_path: Path, name: str) -> None:
    told = refusal(tmp_path, f"[heartbeat]\n{name} = 1\n")
    assert "did you mean [budget] heartbeat_daily_tokens?" in told


def test_a_key_of_another_table_is_sent_to_where_its_very_name_is(tmp_path: Path) -> None:
    assert "it belongs to [provider]" in refusal(tmp_path, '[agent]\nbase_url = "http://h"\n')


def test_lines_are_found_for_dotted_and_quoted_keys_and_after_long_strings(tmp_path: Path) -> None:
    text = 'log.file = """\n[log]\nkeep = 1\n"""\n"log".keep = 0\n'
    assert "line 5: log.keep" in refusal(tmp_path, text)


def test_a_value_where_a_table_belongs(tmp_path: Path) -> None:
    assert "line 1: log is a table, not a single value" in refusal(tmp_path, "log = 3\n")


def test_a_mistake_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    told = refusal(tmp_path, "", AGENTD__LOG__KEEP="many", AGENTD__LOG__NONE="1")
    assert "$AGENTD__LOG__KEEP: log.keep" in told
    assert "$AGENTD__LOG__NONE: log.none is no key" in told


@pytest.mark.parametrize(
    ("text", "environ", "head", "cure"),
    [
        (
            "",
            {"AGENTD__LOG__KEEP": "many"},
            "the environment has a mistake:",
            "$AGENTD__LOG__KEEP;",
        ),
        (
            "[log]\nkeep = 3\n",
            {"AGENTD__LOG__KEEP": "many", "AGENTD__LGO": "1"},
            "the environment has 2 mistakes:",
            "$AGENTD__LGO and $AGENTD__LOG__KEEP;",
        ),
        (
            "[log]\nkeep = 0\n",
            {"AGENTD__LGO": "1"},
            "config.toml and the environment have 2 mistakes:",
            "the file and $AGENTD__LGO;",
        ),
        (
            "[memory_search]\nvector_weight = 0.0\n",
            {"AGENTD__MEMORY_SEARCH__TEXT_WEIGHT": "0", "AGENTD__LOG__KEEP": "3"},
            "config.toml and the environment have a mistake:",
            "the file and $AGENTD__MEMORY_SEARCH__TEXT_WEIGHT;",
        ),
        (
            "",
            {
                "AGENTD__MEMORY_SEARCH__TEXT_WEIGHT": "0",
                "AGENTD__MEMORY_SEARCH__VECTOR_WEIGHT": "0",
            },
            "the environment has a mistake:",
            "$AGENTD__MEMORY_SEARCH__TEXT_WEIGHT and $AGENTD__MEMORY_SEARCH__VECTOR_WEIGHT;",
        ),
        ("[log]\nkeep = 0\n", {"AGENTD__LOG__LEVEL": "debug"}, "config.toml has", "the file;"),
        (
            '[heartbeat]\ntarget = "webhook"\n',
            {"AGENTD__LOG__KEEP": "3"},
            "config.toml has a mistake:",
            "the file;",
        ),
        (
            "",
            {"AGENTD__HEARTBEAT__TARGET": "webhook"},
            "the environment has a mistake:",
            "$AGENTD__HEARTBEAT__TARGET;",
        ),
    ],
)
def test_what_has_the_mistake_is_what_is_to_be_corrected(
    tmp_path: Path, text: str, environ: dict[str, str], head: str, cure: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load(write(tmp_path, text), environ)
    assert head in refused.value.message.partition("\n")[0]
    assert f"correct {cure}" in refused.value.cure


def test_no_time_limit_can_be_nothing_since_elsewhere_that_means_none(tmp_path: Path) -> None:
    keys = [setting.key for setting in describe(read(Path("absent"), {}))]
    limits = [key for key in keys if key.endswith("timeout") or key == "server.drop_after"]
    assert len(limits) >= 10
    for key in limits:
        table, _, name = key.rpartition(".")
        assert "longer than nothing" in refusal(tmp_path, f'[{table}]\n{name} = "0s"\n'), key


def test_a_variable_below_a_plain_value_is_refused(tmp_path: Path) -> None:
    told = refusal(tmp_path, "[log]\nkeep = 3\n", AGENTD__LOG__KEEP__DEEP="1")
    assert "$AGENTD__LOG__KEEP__DEEP: log.keep.deep stands below a key that is no table" in told


def test_broken_toml_is_told_with_line_and_column(tmp_path: Path) -> None:
    assert "line 2, column 8" in refusal(tmp_path, "[log]\nlevel =\n")


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-abcdefghijklmnop",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "postgresql://me:hunter2@db/agentd",
        "12345678:AAabcdefghijklmnopqrstuvwxyz0123456",
    ],
)
@pytest.mark.parametrize("key", ["file", "api_key"])
def test_a_pasted_secret_is_refused_and_not_repeated(tmp_path: Path, secret: str, key: str) -> None:
    told = refusal(tmp_path, f'[log]\n{key} = "{secret}"\n')
    assert f"line 2: log.{key} holds a secret; put it into an environment variable" in told
    assert secret not in told


def test_an_unknown_key_for_a_secret_is_told_the_right_way(tmp_path: Path) -> None:
    assert "environment variable" in refusal(tmp_path, '[log]\nmy_secret = "x"\n')


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a = " + b"[" * 5000 + b"]" * 5000])
def test_a_file_that_is_no_sane_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError):
        load(path, {})


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xef\xbb\xbf[log]\nkeep = 3\n")
    assert load(path, {}).log.keep == 3


def test_a_pipe_in_place_of_the_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(ConfigError, match="is a pipe"):
        load(tmp_path / "config.toml", {})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('[heartbeat]\nenabled = "yes"', "line 2: heartbeat.enabled has to be true or false"),
        ("[heartbeat]\nenabled = 1", "true or false, without quotation marks, got 1"),
        ("[facts]\nmax_results = true", "facts.max_results has to be a whole number like 10"),
        ("[facts]\nmax_results = 5.0", "has to be a whole number like 10"),
        ("[facts]\nprompt_tokens = 1e3", "facts.prompt_tokens has to be a whole number"),
        ('[log]\nkeep = "3"', "log.keep has to be a whole number like 10"),
        ("[memory_search]\nvector_weight = true", "memory_search.vector_weight has to be a number"),
        ("[heartbeat]\nactive_hours_start = 8", 'a time of day in quotation marks, like "08:00"'),
        ("[heartbeat]\nactive_hours_end = 22:00", 'a time of day in quotation marks, like "08:00"'),
        ("[alerts.sinks.command]\nquiet_hours_end = 7", "quiet_hours_end has to be a time of day"),
        ('[mcp.servers.x]\ncommand = "npx foo"', 'command has to be a list, like ["one", "two"]'),
        (
            '[mcp.servers.x]\ncommand = ["a"]\nenabled = "no"',
            "line 3: mcp.servers.x.enabled has to",
        ),
    ],
)
def test_a_value_of_another_kind_is_a_mistake_of_the_file(
    tmp_path: Path, line: str, told: str
) -> None:
    assert told in refusal(tmp_path, line + "\n")


@pytest.mark.parametrize(
    "line",
    [
        "[provider]\napi_key_file = PLACE",
        "[memory_search.embedder]\napi_key_file = PLACE",
        "[memory_search.embedder]\nmodel = PLACE",
        "[graph]\nkey_file = PLACE",
        "[log]\nfile = PLACE",
        "[workspace]\npath = PLACE",
        "[mcp.servers.x]\ncommand = ['a']\ncwd = PLACE",
    ],
)
def test_a_place_where_no_file_can_be_is_a_mistake_of_its_line(tmp_path: Path, line: str) -> None:
    key = line.splitlines()[-1].split()[0]
    at = f"line {line.count(chr(10)) + 1}: "
    told = refusal(tmp_path, line.replace("PLACE", '"~nobody-of-that-name/key"'))
    assert at in told
    assert f"{key} '~nobody-of-that-name/key' has no home folder" in told
    assert "has a NUL character" in refusal(tmp_path, line.replace("PLACE", '"/a\\u0000b"'))


@pytest.mark.parametrize(
    "text",
    [
        "[memory_search]\nextra_paths = ['a=~nobody-of-that-name/x']",
        "[mcp.servers.x]\ncommand = ['a']\nsecrets = { A = 'file:~nobody-of-that-name/x' }",
        "[web.search]\nservice = 'brave'\nkey = 'file:~nobody-of-that-name/x'",
    ],
)
def test_a_place_within_a_value_is_looked_at_too(tmp_path: Path, text: str) -> None:
    assert "'~nobody-of-that-name/x' has no home folder" in refusal(tmp_path, text)


def test_in_the_environment_everything_is_a_text(tmp_path: Path) -> None:
    environ = {"AGENTD__HEARTBEAT__ENABLED": "no", "AGENTD__LOG__KEEP": "3"}
    path = tmp_path / "config.toml"
    assert load(path, environ).log.keep == 3
    assert not load(path, environ).heartbeat.enabled


@pytest.mark.parametrize("path", ["notes", "./notes"])
def test_a_workspace_that_depends_on_where_one_stands_is_refused(tmp_path: Path, path: str) -> None:
    told = refusal(tmp_path, f'[workspace]\npath = "{path}"\n')
    assert "line 2: workspace.path" in told
    assert "is no whole path; write it like" in told


@pytest.mark.parametrize("place", ["file", "file/below", "dangling"])
def test_a_workspace_that_can_be_no_folder_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    places = daemon_places({"AGENTD_HOME": str(tmp_path / "home")})
    config = Config.model_validate({"workspace": {"path": str(tmp_path / place)}})
    with pytest.raises(ConfigError, match="can be no folder") as refused:
        with_workspace(config, places)
    assert "name a folder" in refused.value.cure


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path, {})


def test_what_may_hold_secrets_is_shown_in_part(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        '[alerts]\ncommand = ["curl", "-H", "X-Thing: 4711", "https://example.org"]\n'
        'webhook_url = "https://hooks.example.org/services/T0/B1/secretpath?key=abc"\n'
    )
    found = {setting.key: setting.value for setting in describe(read(path, {}))}
    assert found["alerts.command"] == ["curl", "[3 arguments, not shown]"]
    assert found["alerts.webhook_url"] == "https://hooks.example.org/[not shown]"
    path.write_text('[alerts]\ncommand = ["bell"]\nwebhook_url = "https://example.org/"\n')
    found = {setting.key: setting.value for setting in describe(read(path, {}))}
    assert found["alerts.command"] == ["bell"]
    assert found["alerts.webhook_url"] == "https://example.org"


def test_an_address_of_a_service_is_shown_without_the_keys_in_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[provider]\nbase_url = "https://host.example/v1?api_key=4711abc"\n')
    found = {setting.key: setting.value for setting in describe(read(path, {}))}
    assert found["provider.base_url"] == "https://host.example/v1?[not shown]"


@pytest.mark.parametrize(
    "text",
    [
        '[alerts]\ncommand = "curl -H 4711abc"\n',
        '[alerts]\ncommand = ["curl", ["4711abc"]]\n',
        '[alerts]\nwebhook_url = ["https://hooks.example.org/4711abc"]\n',
        '[provider]\nbase_url = "host.example/?api_key=4711abc"\n',
        '[provider]\nfallback = [{ base_url = "host.example/?api_key=4711abc" }]\n',
        '[memory_search.embedder]\nbase_url = "ftp://4711abc@host"\n',
    ],
)
def test_a_mistake_in_what_may_hold_a_secret_is_told_without_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert "4711abc" not in caught.value.message
    assert "not shown" in caught.value.message


def test_settings_are_spelled_as_toml() -> None:
    for setting in describe(read(Path("absent"), {})):
        if setting.value is not None:
            assert tomli.loads(f"x = {toml(setting.value)}")["x"] == setting.value


def test_a_key_that_does_not_fit_another_is_told_with_its_line(tmp_path: Path) -> None:
    told = refusal(tmp_path, '[log]\n[heartbeat]\ntarget = "phone"\n')
    assert "line 3: heartbeat.target 'phone' names no way of alerting that is on" in told


def test_a_target_of_beats_that_is_not_on_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[heartbeat]\ntarget = "webhook"\n')
    with pytest.raises(ConfigError, match="use one of last, none, journal, socket, main"):
        load(path, {})
    path.write_text(
        '[heartbeat]\ntarget = "webhook"\n[alerts]\nwebhook_url = "https://example.org"\n'
    )
    assert load(path, {}).heartbeat.target == "webhook"


@pytest.mark.parametrize("workspace", ["home", "home/state", "link", "."])
def test_a_state_directory_in_the_workspace_is_refused(tmp_path: Path, workspace: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "home")
    places = daemon_places({"AGENTD_HOME": str(tmp_path / "home")})
    config = Config.model_validate({"workspace": {"path": str(tmp_path / workspace)}})
    with pytest.raises(ConfigError, match="is in the workspace") as refused:
        with_workspace(config, places)
    assert "workspace.path" in refused.value.cure


@pytest.mark.parametrize("workspace", ["home/workspace", "home/state/workspace", "home/sta", ""])
def test_a_workspace_beside_or_below_the_state_is_taken(tmp_path: Path, workspace: str) -> None:
    places = daemon_places({"AGENTD_HOME": str(tmp_path / "home")})
    path = str(tmp_path / workspace) if workspace else ""
    found = with_workspace(Config.model_validate({"workspace": {"path": path}}), places)
    assert found.workspace == (Path(path) if path else places.workspace)
    assert found.state_dir == places.state_dir
