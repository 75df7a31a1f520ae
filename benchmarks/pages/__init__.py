"""What pages tell of the stored figures, renewed by ``python -m benchmarks.pages``.

tables.py      tables by name; a comment in a page, ``<!-- figures: NAME -->``, has the one below it filled
quality.py     their rows of what is found
costs.py       their rows of what it takes
origins.py     the tables that say where, when and of which commit each was measured
sentences.py   figures within sentences, and where each comes from
quoted.py      those sentences
pictures.py    plots
renewing.py    all of that together
"""
