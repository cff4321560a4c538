"""A store's folder as a backend: the only package of the connector that knows its files."""
