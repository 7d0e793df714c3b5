"""Experiments: what to run, and what its results say."""
