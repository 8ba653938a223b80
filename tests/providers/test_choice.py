"""Which provider, with which key, and why."""

import pickle

import pytest
from pydantic import ValidationError

from agentd.core.errors import ConfigError
from agentd.core.secrets import Secret, find_key
from agentd.providers.choice import choose
from agentd.providers.provider_settings import ProviderSettings

ENV = {"ANTHROPIC_API_KEY": "sk-SENTINEL"}


def key_file(folder, mode=0o600, text="sk-file\n"):
    path = folder / "key"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("kind", "environ", "chosen", "problem"),
    [
        ("", ENV, "anthropic", None),
        ("", {}, "offline", None),
        ("", {"ANTHROPIC_API_KEY": "  "}, "offline", None),
        ("anthropic", ENV, "anthropic", None),
        ("anthropic", {}, "anthropic", "no_api_key"),
        ("anthropic", {"ANTHROPIC_API_KEY": "two words"}, "anthropic", "bad_api_key"),
        ("", {"ANTHROPIC_API_KEY": "two words"}, "anthropic", "bad_api_key"),
        ("offline", ENV, "offline", None),
    ],
)
def test_the_kind_follows_the_configuration_and_the_key(kind, environ, chosen, problem):
    choice = choose(ProviderSettings(kind=kind), environ)
    assert choice.kind == chosen
    assert (choice.problem.code if choice.problem else None) == problem
    assert choice.why
    assert "SENTINEL" not in repr(choice)


LOCAL = "http://localhost:11434/v1"
OPENAI = {"OPENAI_API_KEY": "sk-SENTINEL"}


@pytest.mark.parametrize(
    ("base_url", "environ", "problem", "has_key"),
    [
        ("", OPENAI, None, True),
        ("", {}, "no_api_key", False),
        ("", ENV, "no_api_key", False),
        ("https://api.openai.com/v1/", {}, "no_api_key", False),
        (LOCAL, {}, None, False),
        (LOCAL, OPENAI, None, True),
        (LOCAL, {"OPENAI_API_KEY": "two words"}, "bad_api_key", False),
    ],
)
def test_only_a_server_of_ones_own_may_have_no_key(base_url, environ, problem, has_key):
    settings = ProviderSettings(kind="openai", model="m", base_url=base_url)
    choice = choose(settings, environ)
    assert (choice.kind, choice.model) == ("openai", "m")
    assert (choice.problem.code if choice.problem else None) == problem
    assert (choice.secret is not None) == has_key
    assert "SENTINEL" not in repr(choice)


def test_each_kind_has_its_own_variable_and_credential_unless_told_otherwise(tmp_path):
    (tmp_path / "openai_api_key").write_text("sk-openai")
    (tmp_path / "anthropic_api_key").write_text("sk-anthropic")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    openai = {"kind": "openai", "model": "m"}
    assert find_key(ProviderSettings(**openai), environ).reveal() == "sk-openai"
    assert find_key(ProviderSettings(), environ).reveal() == "sk-anthropic"
    told = ProviderSettings(**openai, api_key_env="MINE", api_key_credential="anthropic_api_key")
    assert find_key(told, environ).reveal() == "sk-anthropic"
    assert find_key(told, {**OPENAI, **environ, "MINE": "sk-mine"}).reveal() == "sk-mine"


def test_the_services_are_asked_in_order_each_with_settings_of_its_own():
    settings = ProviderSettings(
        kind="anthropic",
        tries=2,
        fallback=[{"kind": "openai", "model": "m", "base_url": LOCAL}, {"kind": "offline"}],
    )
    assert [s.kind for s in settings.services] == ["anthropic", "openai", "offline"]
    assert [s.tries for s in settings.services] == [2, 4, 4]
    assert [choose(s, ENV).model for s in settings.services] == [
        "claude-sonnet-5-5",
        "m",
        "offline",
    ]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"kind": "openai"}, "must be set"),
        ({"kind": "openai", "model": " "}, "must be set"),
        ({"kind": "anthropic", "fallback": [{"kind": "openai"}]}, "must be set"),
        ({"kind": "anthropic", "fallback": [{"kind": "llama"}]}, '"openai"'),
        ({"kind": "ollama"}, "'anthropic', 'openai' or 'offline'"),
        ({"kind": "anthropic", "fallback": [{"model": "m"}]}, "Field required"),
        ({"kind": "anthropic", "fallback": [{"kind": "offline", "context_window": 9}]}, "Extra"),
        ({"fallback": [{"kind": "offline"}]}, "makes sense only behind"),
        ({"kind": "offline", "fallback": [{"kind": "offline"}]}, "makes sense only behind"),
        ({"capabilities": {"max_tokens_field": "tokens"}}, "max_completion_tokens"),
    ],
)
def test_a_chain_without_meaning_is_a_clear_error(table, words):
    with pytest.raises(ValidationError, match=words):
        ProviderSettings(**table)


def test_the_cure_for_a_missing_key_names_the_variable():
    choice = choose(ProviderSettings(kind="anthropic", api_key_env="MY_KEY"), ENV)
    assert "MY_KEY" in choice.problem.cure


def test_the_model_is_the_configured_one_or_the_kinds_default():
    assert choose(ProviderSettings(), ENV).model == "claude-sonnet-5-5"
    assert choose(ProviderSettings(model="claude-haiku-5-5"), ENV).model == "claude-haiku-5-5"
    assert choose(ProviderSettings(model="claude-haiku-5-5"), {}).model == "offline"


def test_a_kind_that_is_not_there_yet_is_a_clear_error():
    with pytest.raises(ValidationError, match="not available in this version"):
        ProviderSettings(kind="llama")


@pytest.mark.parametrize(
    "table", [{"timeout": "0s"}, {"base_url": "ftp://x"}, {"tries": 0}, {"api_key": "sk-inline"}]
)
def test_values_without_meaning_are_errors(table):
    with pytest.raises(ValidationError):
        ProviderSettings(**table)


def test_the_variable_wins_over_the_credential_and_that_over_the_file(tmp_path):
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "anthropic_api_key").write_text("sk-credential\n")
    settings = ProviderSettings(api_key_file=key_file(tmp_path))
    environ = {"CREDENTIALS_DIRECTORY": str(credentials)}
    assert find_key(settings, {**environ, **ENV}).reveal() == "sk-SENTINEL"
    assert find_key(settings, environ).reveal() == "sk-credential"
    assert find_key(settings, {}).reveal() == "sk-file"
    assert find_key(ProviderSettings(), {"CREDENTIALS_DIRECTORY": str(tmp_path)}) is None


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604, 0o602])
def test_a_file_that_others_may_use_is_refused(tmp_path, mode):
    settings = ProviderSettings(api_key_file=key_file(tmp_path, mode))
    with pytest.raises(ConfigError, match="by others") as caught:
        find_key(settings, {})
    assert "chmod 600" in caught.value.cure
    assert "`agentd restart`" in caught.value.cure, "a key is read at the start alone"
    assert choose(settings, {}).problem.code == "bad_api_key"


def test_a_configured_file_that_is_no_readable_file_is_refused(tmp_path):
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ConfigError):
            find_key(ProviderSettings(api_key_file=str(path)), {})


@pytest.mark.parametrize("text", ["", "a b", "sk-é", "sk-a\nsk-b", "x" * 5000])
def test_what_is_no_key_is_refused_without_repeating_it(tmp_path, text):
    settings = ProviderSettings(api_key_file=key_file(tmp_path, text=text))
    with pytest.raises(ConfigError) as caught:
        find_key(settings, {})
    assert "sk-" not in caught.value.message + caught.value.cure


def test_a_secret_shows_itself_to_nobody_who_does_not_ask():
    secret = Secret("sk-SENTINEL", "test")
    assert "SENTINEL" not in f"{secret} {secret!r} {[secret]} {secret:>40}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert secret.reveal() == "sk-SENTINEL"
