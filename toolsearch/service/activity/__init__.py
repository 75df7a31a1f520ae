"""What was done with the service: receipts of calls, figures by hour, and requests without a good answer.

activity.py   what all faces tell, and what is asked of it
observing.py  what the gateway of a corpus tells
costs.py      what the figures say of tokens
figures.py    the names of the figures, and how they are added up
misses.py     which searches count as misses, and what is kept of their words
batches.py    writes what was done, in the background
"""
