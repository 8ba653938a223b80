"""All operations by name."""

from __future__ import annotations

from types import MappingProxyType

from agentd.graph.zero.builtins.holders import HOLDERS
from agentd.graph.zero.builtins.logic import LOGIC
from agentd.graph.zero.builtins.numbers import NUMBERS
from agentd.graph.zero.builtins.outside import OUTSIDE
from agentd.graph.zero.builtins.proofs import PROOFS
from agentd.graph.zero.builtins.texts import TEXTS

BUILTINS = MappingProxyType({**TEXTS, **HOLDERS, **NUMBERS, **LOGIC, **PROOFS, **OUTSIDE})
