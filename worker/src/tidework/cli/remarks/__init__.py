"""What a schedule is likely not to mean: steps that never take effect, changes of the clock."""
