"""Messages that wait: delay levels, delivery times, and what brings them to their topics."""
