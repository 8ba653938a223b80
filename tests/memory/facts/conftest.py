"""A book of facts for each test that asks for one."""

from __future__ import annotations

from functools import partial

import pytest

from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from tests.memory.facts.books import opened_book_home
from tests.memory.facts.talks import Talk


@pytest.fixture
async def home(tmp_path):
    async with opened_book_home(tmp_path) as home:
        yield home


@pytest.fixture
async def facts_db(tmp_path):
    async with Database.open(tmp_path / "state" / "state.db", STATE) as db:
        yield db


@pytest.fixture
def talk(facts_db):
    """Makes a talk with a model that gives these replies, under these settings."""
    return partial(Talk, facts_db)
