"""What engines' tests need of the process that they run in."""

import signal

import pytest


@pytest.fixture
def _ctrl_c():
    """A shell's background jobs ignore Ctrl-C, and so would the tests that they run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
