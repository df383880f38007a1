"""Why does a job not run? Facts are gathered, then explained by one table of cases."""
