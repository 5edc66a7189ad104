"""Complex elementary functions, each part correctly rounded."""
