"""Kafka as the other side: its jars, a broker of its own, its clients' settings."""
