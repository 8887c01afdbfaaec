"""What is known about the numbers in scalar regions: how large they can be, and which are whole."""
