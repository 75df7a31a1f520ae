"""What is kept in SQLite files: one file for each place, all with the same tables."""
