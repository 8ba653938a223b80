"""The configuration: the settings of all parts, read from one TOML file and the environment.

The table of a part is one line in `Config`. `AGENTD__TABLE__KEY=value` in the environment overrides
the file, which overrides the default. Run as a module, it writes the example file to standard
output.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import tomli
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError, model_validator
from pydantic.fields import FieldInfo

from agentd.app.config_mistakes import KeyMistake, described, mistyped, pasted_secrets, refusal
from agentd.app.config_text import Key, key_lines, plain, toml
from agentd.app.logs import LogSettings
from agentd.automation.alerts.alert_settings import AlertsSettings, resolve
from agentd.automation.heartbeat.heartbeat_settings import HeartbeatSettings
from agentd.automation.jobs.job_settings import JobsSettings
from agentd.core.errors import ConfigError
from agentd.core.paths import DaemonPaths, expanded, why_unmade
from agentd.core.redaction import redact
from agentd.core.settings import ActsOutside, NamedTables, Settings, ShownAs, at_defaults
from agentd.engine.budget import BudgetSettings
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.engine.settings import AgentSettings, ToolsSettings
from agentd.interfaces.acp.socket_settings import ServerSettings
from agentd.interfaces.mcp.mcp_settings import McpSettings
from agentd.interfaces.web.web_settings import WebSettings
from agentd.memory.facts.fact_settings import FactsSettings
from agentd.memory.graph.graph_settings import GraphSettings
from agentd.memory.index.embedding.embedding_settings import EmbedderSettings
from agentd.memory.index.search.search_settings import SearchSettings
from agentd.memory.settings import IndexSettings, MemoryFlushSettings
from agentd.providers.provider_settings import ProviderSettings
from agentd.storage.storage_settings import StorageSettings
from agentd.workspace.workspace_settings import WorkspaceSettings

_PREFIX = "AGENTD__"
_HEAD = """\
# agentd's configuration. Every key stands here with its default; keep what you change.
# Durations are written like "45s", "30m" or "1h30m", times of day like "08:00".
# AGENTD__TABLE__KEY in the environment wins over this file. Secrets never stand here.
"""


class CompactionConfig(CompactionSettings):
    """When the context shrinks, and to what."""

    memory_flush: MemoryFlushSettings = at_defaults()


class MemorySearchConfig(SearchSettings, IndexSettings, EmbedderSettings):
    """How memory is searched, what is indexed, and what turns texts into vectors."""


class Config(Settings):
    """All settings, one table a part."""

    agent: AgentSettings = at_defaults()
    tools: ToolsSettings = at_defaults()
    provider: ProviderSettings = at_defaults()
    compaction: CompactionConfig = at_defaults()
    heartbeat: HeartbeatSettings = at_defaults()
    jobs: JobsSettings = at_defaults()
    workspace: WorkspaceSettings = at_defaults()
    alerts: AlertsSettings = at_defaults()
    memory_search: MemorySearchConfig = at_defaults()
    facts: FactsSettings = at_defaults()
    graph: GraphSettings = at_defaults()
    budget: BudgetSettings = at_defaults()
    server: ServerSettings = at_defaults()
    storage: StorageSettings = at_defaults()
    log: LogSettings = at_defaults()
    mcp: McpSettings = at_defaults()
    web: WebSettings = at_defaults()

    @property
    def key_variables(self) -> frozenset[str]:
        """The names of the environment variables that may hold keys, whether they are set or
        not.
        """
        models = [service.key_variable for service in self.provider.services]
        others = (
            *self.memory_search.key_variables,
            *self.mcp.key_variables,
            *self.web.key_variables,
            *self.alerts.key_variables,
        )
        return frozenset(filter(None, (*models, *others)))

    @model_validator(mode="after")
    def _beats_have_a_target(self) -> Self:
        try:
            resolve(self.heartbeat.target, self.heartbeat.to, self.alerts.names)
        except ConfigError as error:
            told = f"{error.message}; {error.cure}"
            raise KeyMistake(("heartbeat", "target"), told) from None
        return self

    @model_validator(mode="after")
    def _scopes_have_one_name_each(self) -> Self:
        both = self.workspace.scopes().keys() & self.memory_search.extras().keys()
        if both:
            told = f"{min(both)!r} is the name of a scope and of an extra path; rename one of them"
            raise KeyMistake(("workspace", "read_scopes"), told)
        return self


class Setting(Struct, frozen=True):
    """A key with its value in force."""

    key: str  # heartbeat.interval
    value: Any  # plain JSON: durations and times of day are text
    origin: str  # default, file or environment


class OutwardSetting(Struct, frozen=True):
    """A setting that acts beyond agentd, with its full value; `how` says in words what it does."""

    key: str
    value: Any
    how: str


class LoadedConfig(Struct, frozen=True):
    """A configuration and where it came from."""

    config: Config
    origins: Mapping[Key, str]


def load(path: Path, environ: Mapping[str, str]) -> Config:
    """Return the configuration from the file at `path` and from `environ`; without a file all
    settings have their defaults.

    Raises ConfigError that names every mistake with its key, and its line where that is known.
    """
    return read(path, environ).config


def read(path: Path, environ: Mapping[str, str]) -> LoadedConfig:
    """Do `load`, and also return the origin of each key that is not at its default.

    Raises ConfigError that names every mistake and its line.
    """
    return read_text(text_of(path), path, environ)


def read_text(text: str, path: Path, environ: Mapping[str, str]) -> LoadedConfig:
    """Do `read` as if the file at `path` contained this text. Raises what `read` raises."""
    data = _parse(text, path)
    places = dict.fromkeys(_keys(data), "file")
    variables = dict(_overrides(environ))
    kinds = {key: told for key, told in mistyped(Config, data) if key not in variables}
    mistakes = [
        (key, "stands below a key that is no table")
        for key, (_, value) in variables.items()
        if not _put(data, key, value)
    ]
    mistakes += kinds.items()  # a key's earlier mistake takes precedence
    config, unknown = Config(), set[Key]()
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        known = tuple(_keys(_nested(Config())))
        details = error.errors(include_url=False)
        for detail in details:
            key, told = described(detail, data, known, _PARTLY_SHOWN)
            mistakes.append((key, told))
            unknown |= {key} if detail["type"] == "extra_forbidden" else set()
    pasted = pasted_secrets(data)
    if mistakes or pasted:
        lines = {key: f"line {number}" for key, number in key_lines(text).items()}
        names = {key: f"${name}" for key, (name, _) in variables.items()}
        raise refusal(path, lines | names, dict(reversed(mistakes)) | pasted, unknown)
    return LoadedConfig(config, places | dict.fromkeys(variables, "environment"))


def with_workspace(config: Config, places: DaemonPaths) -> DaemonPaths:
    """Return the places with the configured workspace. Raises ConfigError if the workspace is not a
    folder and cannot be created, or if it contains the state directory: agentd would read, version
    and mask its open databases as if they were notes.
    """
    path = config.workspace.path
    workspace = expanded(path) if path else places.workspace
    if places.state_dir.resolve().is_relative_to(workspace.resolve()):
        raise ConfigError(
            f"the state directory {places.state_dir} is in the workspace {workspace}",
            cure="let workspace.path name a folder that does not hold it, or move AGENTD_HOME",
        )
    if reason := why_unmade(workspace):
        raise ConfigError(
            f"the workspace {workspace} can be no folder: {reason}",
            cure=(
                "let workspace.path name a folder, or one that you may make, or move "
                "away what stands there"
            ),
        )
    return replace(places, workspace=workspace)


def describe(loaded: LoadedConfig) -> tuple[Setting, ...]:
    """Return every key with its value in force and its origin, in the order of the example file, to
    be shown to people: values that may hold secrets are shown in part.
    """
    return tuple(
        Setting(".".join((*table, name)), _shown(value, field), _origin(loaded, (*table, name)))
        for table, settings in _tables(loaded.config)
        for name, field, value in _leaves(settings)
    )


def values(config: Config) -> Mapping[str, Any]:
    """Return the full value in force of every key."""
    return {
        ".".join((*table, name)): value
        for table, settings in _tables(config)
        for name, _, value in _leaves(settings)
    }


def reaching(config: Config) -> tuple[OutwardSetting, ...]:
    """Return the settings whose present values act beyond agentd."""
    return tuple(_reaching(config, ""))


def _reaching(value: Any, key: str) -> Iterator[OutwardSetting]:
    if isinstance(value, Settings):
        for name, field in type(value).model_fields.items():
            inner, path = getattr(value, name), f"{key}.{name}".lstrip(".")
            mark = next((mark for mark in field.metadata if isinstance(mark, ActsOutside)), None)
            if mark is None:
                yield from _reaching(inner, path)
            elif mark.when(inner):
                yield OutwardSetting(path, plain(inner), mark.how)
    elif isinstance(value, tuple):
        for number, inner in enumerate(value, start=1):
            yield from _reaching(inner, f"{key}[{number}]")


def example() -> str:
    """Return the text of config.example.toml: every key with its default and a line that describes
    it.
    """
    blocks = [_HEAD]
    for table, settings in _tables(Config()):
        summary = (type(settings).__doc__ or "").strip().splitlines()[0]
        lines = [f"# {summary}", f"[{'.'.join(table)}]"]
        for name, field, value in _leaves(settings):
            lines.append(f"# {field.description}")
            apart = next((mark for mark in field.metadata if isinstance(mark, NamedTables)), None)
            if apart is not None:
                lines += _table_apart((*table, name, "NAME"), apart.model)
            else:
                lines.append(f"# {name} =" if value is None else f"{name} = {toml(value)}")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _table_apart(table: Key, model: type[Settings]) -> Iterator[str]:
    """Yield, as comments, the keys of a table that may occur many times under different names."""
    yield f"# {table[-2]} = each in a table [{'.'.join(table)}]:"
    for name, field in model.model_fields.items():
        yield f"# {name} = {toml(plain(field.default, field))}  # {field.description}"


def text_of(path: Path) -> str:
    """Return the file's text, "" if there is no file. Raises ConfigError if it cannot be read."""
    try:
        # Does not wait for a writer if the file is a pipe.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                msg = f"{path} cannot be read: it is a pipe"
                raise ConfigError(msg, cure="make it a regular file that you can read")
            return file.read().decode("utf-8-sig")  # some editors put a byte order mark before it
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        msg = f"{path} is not UTF-8 (byte {error.start})"
        raise ConfigError(msg, cure="save the file as UTF-8") from None
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise ConfigError(msg, cure="make it a regular file that you can read") from None


def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        msg = f"{path}, line {error.lineno}, column {error.colno}: {error.msg}"
        raise ConfigError(msg, cure="correct the TOML there") from None
    except RecursionError:
        msg = f"{path} nests too deeply"
        raise ConfigError(msg, cure="write its tables flat") from None


def _overrides(environ: Mapping[str, str]) -> Iterator[tuple[Key, tuple[str, Any]]]:
    for name, value in sorted(environ.items()):
        if name.startswith(_PREFIX):
            yield tuple(name.removeprefix(_PREFIX).lower().split("__")), (name, _unquoted(value))


def _unquoted(value: str) -> Any:
    """Parse lists and tables as TOML; return all else as text, which the settings convert
    themselves.
    """
    if value[:1] in ("[", "{"):
        try:
            return tomli.loads(f"value = {value}")["value"]
        except tomli.TOMLDecodeError:
            return value
    return value


def _put(data: dict[str, Any], key: Key, value: Any) -> bool:
    table: Any = data
    for name in key[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            return False
    table[key[-1]] = value
    return True


def _keys(data: Mapping[str, Any], prefix: Key = ()) -> Iterator[Key]:
    for name, value in data.items():
        yield (*prefix, name)
        if isinstance(value, dict):
            yield from _keys(value, (*prefix, name))


def _tables(settings: Settings, prefix: Key = ()) -> Iterator[tuple[Key, Settings]]:
    if prefix:
        yield prefix, settings
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, Settings):
            yield from _tables(value, (*prefix, name))


def _leaves(settings: Settings) -> Iterator[tuple[str, FieldInfo, Any]]:
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if not isinstance(value, Settings):
            yield name, field, plain(value, field)


def _nested(settings: Settings) -> dict[str, Any]:
    return {
        name: _nested(value) if isinstance(value, Settings) else None
        for name in type(settings).model_fields
        for value in (getattr(settings, name),)
    }


def _partly_shown(model: type[BaseModel]) -> Iterator[str]:
    """Yield the names of the settings, at any depth, whose values `config show` shows only in
    part.
    """
    for name, field in model.model_fields.items():
        if any(isinstance(mark, ShownAs) for mark in field.metadata):
            yield name
        if isinstance(inner := field.annotation, type) and issubclass(inner, BaseModel):
            yield from _partly_shown(inner)


_PARTLY_SHOWN = frozenset(_partly_shown(Config))


def _shown(value: Any, field: FieldInfo) -> Any:
    shown = next((mark for mark in field.metadata if isinstance(mark, ShownAs)), None)
    return _redacted(shown.by(value) if shown else value)


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _redacted(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_redacted(inner) for inner in value]
    return redact(value) if isinstance(value, str) else value


def _origin(loaded: LoadedConfig, key: Key) -> str:
    return loaded.origins.get(key, "default")


if __name__ == "__main__":
    sys.stdout.write(example())
