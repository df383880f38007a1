"""What keeps queues in order while nobody works on them."""
