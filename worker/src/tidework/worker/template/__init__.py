"""The supervisor's side of the template process: start it, order children from it, replace it."""
