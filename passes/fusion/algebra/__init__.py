"""Equations between layers: one file for each kind of algebra, with a table `EQUATIONS`."""
