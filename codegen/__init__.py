"""What writes: kernel IR to Python source, text in and text out."""
