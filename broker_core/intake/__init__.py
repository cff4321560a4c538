"""What comes in, on its way into records: types, queues, delays and limits."""
