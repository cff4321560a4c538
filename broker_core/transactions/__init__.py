"""Transactions: half messages, their ends, and asking for what has no end. No sockets."""
