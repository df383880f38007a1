"""`tidework dev`: the whole system on one machine, without a cluster and without a server."""
