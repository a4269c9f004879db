"""Code injected into the program under study: standard library only, never imports becausal."""
