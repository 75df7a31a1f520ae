"""Chat: messages, the port to models, the client, and what advises it."""
