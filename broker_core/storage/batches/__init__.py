"""Batches of many tasks: staged, announced, in the log whole or not at all, and once."""
