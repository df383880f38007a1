"""What a worker does for each of its queues: claim, hold, renew, settle."""
