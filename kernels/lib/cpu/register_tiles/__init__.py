"""Register tiles on a CPU: the loops around them, the tasks of workers, and what is done with their elements."""
