"""rocketpy side by side with Kafka, Parquet and the bare floor of Spark's Python sources."""
