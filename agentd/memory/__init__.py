"""What happens to memory around a turn: the flush and the index."""
