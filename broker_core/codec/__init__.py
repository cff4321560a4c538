"""Record bytes to values and back: no files, no clocks, no locks."""
