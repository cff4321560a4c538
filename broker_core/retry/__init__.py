"""Messages that a group could not deal with: tried again later, then dead letters, then back."""
