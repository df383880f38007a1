"""CronTasks of the cluster: documents to the scheduler's registry, conditions and status back."""
