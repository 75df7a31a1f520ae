"""What is kept in SQLite files: one file for each place, all with the same tables.

schema.py     the tables, the steps from earlier versions, and a look that changes nothing
database.py   connections to one file, and the base of what keeps one kind of data in a file of its own
stores.py     such files, as the library and the gateway have them
place.py      all kinds in one file, by tenant; backups and restores
"""
