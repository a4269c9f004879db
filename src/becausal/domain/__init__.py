"""The words of becausal: frozen records without I/O, clock, randomness or framework."""
