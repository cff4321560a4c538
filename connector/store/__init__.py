"""A store directory as a place that holds messages: the only room here that knows a folder."""
