from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from agentd.app.config import Config
from agentd.memory.settings import IndexSettings


def test_extra_paths_have_names(monkeypatch):
    monkeypatch.setenv("HOME", "/home/alice")
    settings = IndexSettings(extra_paths=("docs=/srv/docs", "plan=~/plan=b.md"))
    assert settings.extras() == {
        "docs": Path("/srv/docs"),
        "plan": Path("/home/alice/plan=b.md"),
    }


@pytest.mark.parametrize(
    ("paths", "why"),
    [
        (("/srv/docs",), "write it like"),
        (("docs=srv",), "write it like"),
        (("Docs=/srv",), "write it like"),
        (("a=/x", "a=/y"), "same name"),
    ],
)
def test_other_spellings_are_refused_with_an_example(paths, why):
    with pytest.raises(ValidationError, match=why):
        IndexSettings(extra_paths=paths)


@pytest.mark.parametrize(
    "values",
    [{"chunker": "turns"}, {"chunk_size": 9}, {"chunk_overlap": 0.6}, {"index_delta_bytes": -1}],
)
def test_sizes_that_make_no_sense_are_refused(values):
    with pytest.raises(ValidationError):
        IndexSettings(**values)


def test_a_scope_and_an_extra_path_cannot_share_a_name():
    with pytest.raises(ValidationError, match="'docs' is the name of a scope and of an extra path"):
        Config.model_validate(
            {
                "workspace": {"read_scopes": ["docs=/srv/one"]},
                "memory_search": {"extra_paths": ["docs=/srv/two"]},
            }
        )
