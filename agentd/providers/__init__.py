"""Language models behind the Provider port."""
