"""Decodes what the payload saw into the words of the domain."""
