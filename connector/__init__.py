"""The Spark connector: `format("rocketpy")` for batch and streaming, reading and writing."""
