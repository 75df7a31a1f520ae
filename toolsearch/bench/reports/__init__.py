"""The report of a study, in each of its forms."""
