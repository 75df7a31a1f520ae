"""What tool search saves, and what it costs: conversations over a catalog, counted to the token.

What is said in a conversation comes from real sessions, in the provider's own format. What it costs is arithmetic: the
tokens of each request, what of them the provider's prompt cache holds, and the price.
"""
