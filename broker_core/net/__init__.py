"""The only sockets: connections of servers and clients, and how requests reach their handlers."""
