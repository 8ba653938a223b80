"""The only code that runs turns."""
