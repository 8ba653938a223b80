"""Values, errors, ports, time and places: what every other package shares."""
