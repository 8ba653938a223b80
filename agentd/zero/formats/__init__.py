"""The graph as text shorter than `.0`: for exchange, for prompts, and for changes. Pure."""
