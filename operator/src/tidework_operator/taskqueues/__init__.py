"""TaskQueues: spec -> objects in the cluster, and a status that says how they fare."""
