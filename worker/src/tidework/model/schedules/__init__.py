"""When a CronTask fires: cron expressions, intervals, instants, zones, excluded days."""
