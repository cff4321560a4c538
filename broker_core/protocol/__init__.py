"""The remoting protocol without sockets: bytes in, values out."""
