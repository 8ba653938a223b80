"""How the daemon is reached: commands and the socket by people, tools by the model."""
