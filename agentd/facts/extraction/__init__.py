"""Reading facts out of what the user says."""
