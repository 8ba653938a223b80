"""The program: its configuration, how its parts are put together, the daemon, the command line."""
