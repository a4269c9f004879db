"""Fakes that implement the ports, and the conformance suites every backend passes."""
