"""CronTasks for people: found by name, told, and acted on; for the command line and the API."""
