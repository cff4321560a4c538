"""What is wrong with a store, or with the disk where it is, and what to do about it."""
