"""What chooses: configuration, tactics, and the way from Python source to machine code."""
