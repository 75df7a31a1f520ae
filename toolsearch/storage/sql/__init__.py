"""Every port in SQL that SQLite and PostgreSQL both understand, so that there is one implementation of each.

database.py   what a database owes: connections, transactions, locks, errors of its own
store.py      the base of what keeps one kind of data
storage.py    all kinds in one database, by tenant
counters.py   versions
changes.py    tells replicas what was written

A statement has ``?`` for each value, in order, or ``?1``, ``?2`` where one is used twice. What a transaction reads in
order to write is read after a lock, which `Connection.lock` takes, or `counters.following`. A transaction that takes
several takes them in this order, so that no two wait for each other:

1. the counters of a tenant: sessions, records, contents
2. the locks of what was learnt from use, then of what was approved, then of a conversation
3. rows: those of one table by their keys

The service writes records before it changes contents. What does wait in a circle nevertheless is ended by PostgreSQL
after a second, and is a StorageError that says to try again.
"""
