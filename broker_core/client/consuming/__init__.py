"""Consumers: what they pulled, which queues are theirs, what becomes of each message."""
