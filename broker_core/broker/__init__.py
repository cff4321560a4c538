"""The broker: a store served over TCP, by the remoting protocol of RocketMQ."""
