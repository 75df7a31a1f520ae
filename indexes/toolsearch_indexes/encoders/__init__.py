"""Encoders turn text into vectors. Import an encoder from its own module, since each loads its own library."""
