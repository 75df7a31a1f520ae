"""What several replicas of a service keep together, in one PostgreSQL database.

schema.py     the tables, and the steps from earlier versions
database.py   a pool of connections: to read, to write, to lock
listening.py  hears what other replicas have written
watched_connection.py  availability.py  failures.py
              what happens when the server is away, silent or busy
migration.py  makes the tables, while other replicas use them
vectors.py  leases.py    what only replicas need
storage.py    all kinds of data, by tenant
urls.py  connecting.py    what a URL says, without its password; a connection for one piece of work
copies.py  inspection.py  place.py
              backups and restores; looks, and changes nothing; both for whoever has the URL
"""
