"""The offline provider's rules and tables for English and German."""
