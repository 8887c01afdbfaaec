"""How structured loops become the work of blocks and threads."""
