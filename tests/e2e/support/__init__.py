"""What the scenarios share: the installed chart, documents, queues and pods from outside.

`installation` (the chart, once for all), `documents` (TaskQueues and CronTasks as JSON data),
`store` (Redis through a forwarded port), `workspace` (a namespace with workers), `pod_watch`.
"""
