"""What is wrong with a store, or with the place where it is, and what to do about it."""
