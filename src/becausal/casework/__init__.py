"""One file per chapter of a case; drives the ports."""
