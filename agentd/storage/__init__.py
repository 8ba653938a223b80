"""SQLite behind the store ports."""
