"""What brokers, clients and tools ask of a name server."""
