"""The built-in provider: rules instead of a language model."""
