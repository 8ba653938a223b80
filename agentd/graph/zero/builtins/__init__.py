"""The operations of the language, by what they work on."""
