"""The Python client beside Apache's Java client, both on the same Apache broker."""
