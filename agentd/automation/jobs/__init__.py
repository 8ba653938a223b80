"""Jobs: reminders and silent questions at set times."""
