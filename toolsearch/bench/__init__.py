"""Measures the savings and costs of tool search: conversations over a catalog, counted to the token.

The content of a conversation comes from real sessions, in the provider's own format. Its cost is arithmetic: the tokens
of each request, those of them in the provider's prompt cache, and the price.
"""
