"""The runner over all benchmarks: ``python -m benchmarks``.

question.py    what a question is: what it asks and needs, and which of its figures are compared
questions.py   all of them
running.py     each in a process of its own
comparing.py   the figures of two runs side by side
"""
