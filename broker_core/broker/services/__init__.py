"""What the broker does by itself: registering, saving, checking."""
