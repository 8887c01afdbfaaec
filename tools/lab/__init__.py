"""What rt-lab does: a pass measured on networks, in numbers, with their confidence, and as a picture."""
