"""The graph as text that is shorter than `.0`: for exchange, for prompts, and as changes. Pure."""
