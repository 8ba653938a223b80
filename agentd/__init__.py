"""agentd: a personal agent that stays on.

The layers, from high to low, are listed in ARCHITECTURE.md and enforced by import-linter.
"""

__version__ = "0.1.0"
