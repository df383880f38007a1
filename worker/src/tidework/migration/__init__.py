"""Taking over what other schedulers run: a crontab, a CronJob of Kubernetes. Pure but for writing.

Each source becomes documents (a TaskQueue, CronTasks) and commands; what cannot be carried over as
it is becomes a note. Nothing is dropped without one.
"""
