"""The method, pure: searches that ask for trials, and the statistics that judge them."""
