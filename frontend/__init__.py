"""What reads: trained networks into the `trt` dialect."""
