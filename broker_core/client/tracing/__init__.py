"""What a client tells of its messages: RocketMQ's own traces, and spans of OpenTelemetry."""
