"""Adapters of the chat model port to the providers' official SDKs, each imported only where it is used."""
