"""A book of facts for each test that asks for one."""

from __future__ import annotations

import pytest

from tests.memory.facts.books import opened_book_home


@pytest.fixture
async def home(tmp_path):
    async with opened_book_home(tmp_path) as home:
        yield home
