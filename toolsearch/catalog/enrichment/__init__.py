"""Lets a language model write the requests of users into a file, a few calls for many tools."""
