"""The compatible proxy: an HTTP endpoint in front of a model API, which gives programs that nobody changes tool search.

What a conversation has found stands in its history. Only of a reply that the model API stores, the proxy remembers the
rest: see `known_replies`.
"""
