"""What turns text into vectors. Import the encoder that is meant from its own module; each loads its library itself."""
