"""What was done with the service: receipts of calls, figures by hour, and requests without a good answer.

activity.py   what every face reports, and what is kept of it
figures.py    the figures by hour, key and session; figures and other items are written in batches
receipts.py   the receipts of calls: ``/v1/receipts``, and the page
misses.py     searches without a good answer: ``/v1/misses``, and the page
"""
