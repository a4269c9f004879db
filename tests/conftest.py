"""What holds for all tests."""

from __future__ import annotations

import signal

# Started in the background of a script, we were told to ignore Ctrl-C, and so would be every
# program that the tests start; they ask what Ctrl-C does to it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
