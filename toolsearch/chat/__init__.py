"""Chat: messages, the interface to models, the client, and its advisors."""
