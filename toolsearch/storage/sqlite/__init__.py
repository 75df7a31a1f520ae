"""What is kept in SQLite files: one file for each place, all with the same tables.

schema.py     the tables, and the steps from earlier versions
database.py   connections to one file: one that writes, and others that read meanwhile
file.py       the base of what keeps one kind of data, with our own errors
storage.py    all kinds in one file, by tenant
counters.py   versions   copies.py  backups   inspection.py  looks, and changes nothing
"""
