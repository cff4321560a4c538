"""The commands of `rocketpy` that know of Spark."""
