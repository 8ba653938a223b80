"""The check of the graph's chain."""

from __future__ import annotations

import pytest

from agentd.app.doctor.examine import examine
from agentd.app.doctor.memory_checks import GraphJournalCheck
from agentd.core.health import Level
from agentd.memory.graph.graph_exchange import ChainVerdict
from agentd.memory.graph.journal import Verdict

SOUND = ChainVerdict(Verdict(7))
BROKEN = ChainVerdict(Verdict(2, 3, "it is missing: the log was cut off"))
CHANGED = ChainVerdict(Verdict(7), ("ada",))


@pytest.mark.parametrize(
    ("found", "is_kept", "level", "says"),
    [
        (SOUND, False, Level.OK, "the graph keeps no chain"),
        (SOUND, True, Level.OK, "7 entries of the graph's chain are sound"),
        (BROKEN, True, Level.FAIL, "entry 3 of memory/graph/chain.txt: it is missing"),
        (CHANGED, True, Level.WARN, "of ada"),
    ],
)
async def test_a_chain_that_was_changed_is_a_failure(found, is_kept, level, says):
    async def logged():
        return found

    (finding,) = await examine([GraphJournalCheck(logged, is_kept)])
    assert (finding.code, finding.level) == ("graph_chain", level)
    assert says in finding.text
    assert bool(finding.cure) == (level is not Level.OK)
