"""What Spark finds when it looks through the modules named `pyspark_*` for data sources."""
