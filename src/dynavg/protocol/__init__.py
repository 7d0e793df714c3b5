"""Who says what to whom. Standard library only: no torch, no numpy, no I/O, no clock."""
