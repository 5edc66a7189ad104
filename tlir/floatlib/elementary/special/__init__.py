"""Special functions, correctly rounded."""
