"""What answers: plan files, engines and contexts; needs no compiler."""
