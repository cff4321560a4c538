"""Spark on clusters: our broker and Apache's, beside a folder and beside Kafka's connector."""
