"""Who asks, and what the asker may do. It knows HTTP requests, and no route."""
