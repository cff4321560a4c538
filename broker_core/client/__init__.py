"""A client of clusters on plain blocking sockets: for the command line and for Spark's tasks."""
