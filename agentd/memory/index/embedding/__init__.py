"""Texts to vectors, behind the Embedder port."""
