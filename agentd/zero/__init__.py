"""The `.0` language: graphs of pure operations, parsed, checked and executed."""

from __future__ import annotations

from agentd.zero.call import Host, ProgramLimits
from agentd.zero.interpreter import Execution, execute
from agentd.zero.parser import parse, parse_all
from agentd.zero.program_graph import (
    Condition,
    Constant,
    External,
    Graph,
    Lookup,
    Node,
    Operation,
    Permission,
    Route,
    constant,
    operation,
)
from agentd.zero.values import Array, Confidence, Hash32, Map, Value, value_of
from agentd.zero.writer import write, write_compatible

__all__ = [
    "Array",
    "Condition",
    "Confidence",
    "Constant",
    "Execution",
    "External",
    "Graph",
    "Hash32",
    "Host",
    "Lookup",
    "Map",
    "Node",
    "Operation",
    "Permission",
    "ProgramLimits",
    "Route",
    "Value",
    "constant",
    "execute",
    "operation",
    "parse",
    "parse_all",
    "value_of",
    "write",
    "write_compatible",
]
