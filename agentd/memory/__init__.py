"""What is remembered: notes and the flush that writes them, the index, facts, the graph."""
