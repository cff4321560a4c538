"""A cluster as a backend: its brokers are asked over TCP, by the blocking client."""
