"""The compatible proxy: an HTTP endpoint in front of a model API, which gives programs that nobody changes tool search.

Nothing is kept between requests: what a conversation has found stands in its history.
"""
