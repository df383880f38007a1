"""``kubectl tidework``: what a cluster knows of queues and CronTasks, told at a terminal."""
