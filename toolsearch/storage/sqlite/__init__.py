"""What is kept in SQLite files: one file for each place, all with the same tables.

schema.py     the tables, and the steps from earlier versions
database.py   connections to one file: one that writes, and others that read meanwhile
file.py       the base of what keeps one kind of data in a file of its own
stores.py  pins.py  messages.py    such files, as the library and the gateway have them
storage.py    all kinds in one file, by tenant
copies.py     backups        inspection.py  looks, and changes nothing
place.py      both, for whoever has the path of a service's file
"""
