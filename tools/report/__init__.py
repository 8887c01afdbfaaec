"""The report of a plan file: one HTML page without scripts and without links to anything outside."""
