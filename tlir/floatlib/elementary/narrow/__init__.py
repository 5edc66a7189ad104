"""Elementary functions of formats of at most 24 bits of precision, in float64 arithmetic with proven bounds."""
