"""The only package that knows APScheduler."""
