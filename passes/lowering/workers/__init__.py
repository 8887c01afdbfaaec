"""How structured loops become vector code that the workers of a CPU share."""
