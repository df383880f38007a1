-- Undoes a person's cordon. The autoscaler's, if there is one, stands: it may be about to take the
-- worker away.
-- flags: allow-oom
-- keys: draining
-- args: incarnation
-- uses: now reads writes record waiting cordon
-- Returns {1, or 0 if no person had cordoned it, 1 if the autoscaler still does}.
local by_person, by_autoscaler = undo_cordon(A.incarnation)
-- Whoever claims again has to be told that there is work.
wake()
return {by_person and 1 or 0, by_autoscaler and 1 or 0}
