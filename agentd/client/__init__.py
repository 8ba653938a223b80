"""The small JSON-RPC client of the commands."""
