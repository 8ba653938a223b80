"""Finds what the configuration refers to and what does not exist: programs, keys, folders.

These are warnings, not mistakes: the daemon starts, since the rest works and what is missing may be
added later. What keeps the daemon from starting is found when the configuration is read. Blocks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from agentd.app.config import Config
from agentd.app.logs import file_of
from agentd.core.errors import ConfigError
from agentd.core.health import Finding
from agentd.core.paths import DaemonPaths, expanded, why_unmade
from agentd.core.secrets import read_key
from agentd.memory.index.embedding.choice import choose_all
from agentd.providers.choice import choose

_CODE = "config"


def absent(config: Config, places: DaemonPaths, environ: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return a warning for each missing thing, as seen from this process: a service has another
    environment. `places` come from `with_workspace`. Runs no program, and requests nothing over the
    network.
    """
    return (
        *_keys(config, places, environ),
        *_programs(config, environ),
        *_folders(config),
        *_workspace(places),
        *_log(config, places),
    )


def _keys(config: Config, places: DaemonPaths, environ: Mapping[str, str]) -> Iterator[Finding]:
    problems = [choose(service, environ).problem for service in config.provider.services]
    embedders = choose_all(config.memory_search, environ, places.state_dir / "models")
    problems += [choice.problem for choice in embedders]
    for problem in filter(None, problems):
        yield Finding.warn(_CODE, problem.text, problem.cure)
    if file := config.graph.key_file:
        try:
            read_key(expanded(file), "[graph] key_file")
        except ConfigError as error:
            yield Finding.warn(_CODE, error.message, error.cure)


def _programs(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    named = {"alerts.command": config.alerts.command}
    for name, server in config.mcp.enabled.items():
        named[f"mcp.servers.{name}.command"] = server.command
    for key, command in named.items():
        if command and shutil.which(command[0], path=environ.get("PATH")) is None:
            text = f"{key} names {command[0]!r}, which is no program that can be run here"
            yield Finding.warn(_CODE, text, "correct the name, or install it; a path helps")


def _folders(config: Config) -> Iterator[Finding]:
    named = {
        "memory_search.extra_paths": config.memory_search.extras(),
        "workspace.read_scopes": config.workspace.scopes(),
    }
    for key, paths in named.items():
        for name, path in paths.items():
            if not path.is_dir():
                text = f"{key} names {str(path)!r} ({name}), which is no folder"
                yield Finding.warn(_CODE, text, "correct the path, or make the folder")


def _workspace(places: DaemonPaths) -> Iterator[Finding]:
    """Warn of a workspace that cannot be written to. It can still be read, and a missing one is
    created.
    """
    if places.workspace.is_dir() and not os.access(places.workspace, os.W_OK | os.X_OK):
        text = (
            f"nothing can be written in the workspace {places.workspace}: notes "
            "and facts are not kept"
        )
        yield Finding.warn(
            _CODE, text, "make it writable for you, or let workspace.path name another"
        )


def _log(config: Config, places: DaemonPaths) -> Iterator[Finding]:
    reason = why_unmade(file_of(config.log, places.state_dir).parent) if config.log.file else ""
    if reason:
        text = (
            f"log.file cannot be written: {reason}; without a terminal or systemd "
            "agentd does not start"
        )
        yield Finding.warn(_CODE, text, "name a file that you may write")
