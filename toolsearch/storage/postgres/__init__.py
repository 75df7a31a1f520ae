"""What several replicas of a service keep together, in one PostgreSQL database.

schema.py      the tables; how they are made and brought up to date while other replicas use them
connecting.py  what a URL says, without its password; connections, also to a server that is silent or away
listening.py   hears what other replicas have written
database.py    a pool of connections: to read, to write, to lock; errors as our own
place.py       all kinds of data, by tenant, with leases and vectors; backups and restores
"""
