"""What runs in the template and its children; the supervisor imports nothing of it."""
