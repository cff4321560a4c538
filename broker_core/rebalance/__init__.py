"""Who of a consumer group reads which queue: strategies, members, generations, hand-over."""
