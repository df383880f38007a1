"""The events of log lines: what a line tells, as a word that stays when its sentence changes.

Every call of a logger names one of them in ``extra`` ("event"); people search and alert by it.
"""

from __future__ import annotations

from collections.abc import Mapping

_JOBS = {
    "job_enqueued": "a job was enqueued by a program (debug)",
    "job_not_enqueued": "another job stands for the one that a program enqueued (debug)",
    "document_taken_in": "a document of the inbox is a job now (debug)",
    "document_refused": "a document of the inbox is a dead letter",
    "unknown_field": "a document of the inbox has a field without effect",
    "job_claimed": "a worker took a job under a lease (debug)",
    "job_succeeded": "an attempt succeeded",
    "result_refused": "an attempt succeeded, but its result was not kept",
    "job_retried": "an attempt failed, and the job will run again",
    "job_buried": "the job is a dead letter",
    "job_released": "the job runs again, and the attempt does not count",
    "job_lost": "the child died while the job ran in it",
    "job_cancelled": "the job was cancelled",
    "job_unknown": "no worker knows the task of the job yet",
    "jobs_known": "jobs that no worker knew are ready, for this one knows their tasks",
    "lease_lost": "the lease expired while the job ran; the result does not count",
    "once_not_noted": "the end of a block of once() is reported again until Redis takes it",
    "once_not_forgotten": "the mark of a block of once() that failed stays while its job runs",
    "soft_timeout_clipped": "a soft timeout is not below the hard one, so it comes earlier",
    "cancel_overdue": "a job goes on after it was cancelled, so it is killed",
}
_COMMANDS = {
    "command_output": "a line that a command wrote",
    "command_output_cut": "the command writes more than is logged",
    "command_left_processes": "processes that a command left behind were killed",
}
_WORKER = {
    "worker_started": "the worker claims jobs",
    "worker_draining": "the worker claims no more jobs; running ones may finish",
    "worker_hurried": "a second signal came: running jobs are released",
    "worker_ended": "the worker has ended",
    "worker_failed": "a part of the worker failed, so all of it ends",
    "worker_misconfigured": "the worker cannot start: its settings are wrong",
    "worker_stuck": "the loop of the supervisor does not turn",
    "probes_opened": "the probes listen",
    "probe_failed": "a request to the probes got no answer (debug)",
    "probe_answered": "a request to the probes was answered (debug)",
    "settlements_left": "Redis was away at the end: jobs return when their leases expire",
    "stacks_reported": "stacks of a process, as asked for",
    "application_without_tasks": "the application has no tasks",
    "queue_without_tasks": "no task is declared for a queue that this worker serves",
}
_PROCESSES = {
    "child_ended": "a child ended by itself, or was killed",
    "child_recycled": "a child is replaced as planned",
    "child_worn": "a child takes no more jobs; those it had not begun go elsewhere",
    "child_failed": "the process of a child failed or did not start",
    "child_not_started": "no process could be started; it is tried again",
    "child_left": "a child does not end; it is left to the system",
    "child_protocol_error": "a child sent what cannot be read, so it is killed",
    "loop_blocked": "a task keeps the event loop of its child from turning",
    "loop_free": "the event loop turns again",
    "process_changed": "a job left its process changed; it was put right",
    "orphan_killed": "a process outlived its job and was killed",
    "memory_short": "memory is short",
    "template_ended": "the template process ended; the next one starts",
    "template_silent": "the template process does not answer; another one starts",
    "template_failed": "the template process failed",
    "import_repeated": "the import of the application begins again",
    "connections_shared": "the application opens connections at import",
    "fork_impossible": "the application starts threads at import, so it cannot be forked",
    "reload_asked": "the application will be loaded again",
    "reload_ignored": "the worker drains, so nothing is loaded again",
    "application_reloaded": "the application was loaded again",
    "reload_failed": "the application could not be loaded again; the version before goes on",
}
_QUEUES = {
    "queue_opened": "Redis answers, and the queue is open",
    "queue_not_opened": "the queue cannot be opened yet",
    "queue_paused": "somebody paused the queue",
    "queue_resumed": "somebody resumed the queue",
    "redis_away": "Redis does not answer; the request will be sent again",
    "redis_refused": "Redis refused a request; it will be sent again",
    "redis_back": "Redis answers again",
    "redis_files_changed": "the files of a Redis connection have changed, so it is opened again",
    "redis_files_unreadable": "the files of a Redis connection cannot be read",
    "round_failed": "a round of a loop failed; the next one comes soon",
    "upkeep_failed": "jobs of the queue are not promoted, reaped and pruned",
    "upkeep_back": "they are again",
    "intake_failed": "documents of the inbox are not taken in",
    "leases_reaped": "leases expired: their jobs run again, or are dead letters",
    "dead_letters_many": "the queue nearly has as many dead letters as it keeps",
    "dead_letters_dropped": "the oldest dead letters were dropped",
}
_SCHEDULES = {
    "queue_led": "this process leads the queue",
    "queue_not_led": "the term of the queue could not be raised yet",
    "lead_lost": "another process leads the queue",
    "lead_not_renewed": "the lead of the queue could not be renewed",
    "lead_not_resigned": "the lead could not be resigned and expires by itself",
    "write_fenced": "a write was refused, since another process leads",
    "fired": "a CronTask fired: its job is enqueued",
    "fire_not_enqueued": "a fire was skipped or missed; `verdict` says which",
    "fires_late": "fires of a CronTask are late; its catchUp decides which still run",
    "fires_waiting": "fires of the queue have to wait",
    "fires_resumed": "the CronTasks of the queue are served again",
    "run_by_hand": "a CronTask runs now, as asked for",
    "time_zones_loaded": "which time zones fires follow",
    "clock_differs": "the clock of this machine is not that of Redis",
    "clock_agrees": "it is again",
}
_OPERATOR = {
    "operator_started": "the operator starts",
    "operator_ending": "the operator stops",
    "operator_failed": "a part of the operator failed, so all of it ends",
    "operator_misconfigured": "the operator cannot start: its settings are wrong",
    "part_cancelled": "a part of the operator does not end and is cancelled",
    "replica_leads": "this replica leads",
    "replica_stands_by": "this replica does not lead any more",
    "lease_held": "another holder has the Lease",
    "lease_changed": "somebody else was faster to write the Lease",
    "lease_unreadable": "the Lease could not be read",
    "lease_released": "the Lease was released",
    "lease_not_released": "the Lease could not be released and expires by itself",
    "lead_not_noted": "that this replica leads could not be noted for its restart",
    "listing_failed": "TaskQueues and CronTasks cannot be listed",
    "listing_back": "they can again",
    "watch_ended": "the watch ended; it starts again",
    "watch_silent": "the watch missed recent changes, so it starts again",
    "watch_not_ended": "parts of the watch do not end",
    "queue_scaled": "the replicas of a TaskQueue changed",
    "scaling_failed": "the replicas of a TaskQueue could not be changed",
    "scaling_suspended": "replicas stay as they are, since the API server does not answer",
    "cordon_failed": "the workers to be removed could not be cordoned",
    "status_not_written": "the status of an object could not be written",
    "objects_not_written": "the objects of a TaskQueue could not be written",
    "runs_unreadable": "the runs of a CronTask could not be read (debug)",
    "event_lost": "a Kubernetes event could not be posted",
    "snapshot_used": "the API server is away: CronTasks fire as mirrored into Redis",
    "snapshot_unreadable": "a snapshot could not be read from Redis",
}
_API = {
    "api_listens": "the HTTP API listens",
    "api_ended": "the HTTP API has ended",
    "api_failed": "the HTTP API of `tidework dev` has failed; the rest goes on",
    "request_failed": "a request to the HTTP API failed by a fault of ours",
    "tokens_refused": "the file of tokens is wrong; the tokens stay as they were",
}

EVENTS: Mapping[str, str] = (
    _JOBS | _COMMANDS | _WORKER | _PROCESSES | _QUEUES | _SCHEDULES | _OPERATOR | _API
)
"""Every event that Tidework logs, and what it says."""
