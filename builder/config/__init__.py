"""The configuration of a build as one value: its settings, the checks of each, and the files that it is read from."""
