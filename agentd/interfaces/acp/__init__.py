"""The socket: frames, connections, sessions of the Agent Client Protocol."""
