"""The schedule centre: due fires of CronTasks become jobs, each instant with one verdict."""
