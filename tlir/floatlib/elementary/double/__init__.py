"""Elementary functions of wider formats up to binary64, in double-double arithmetic with proven bounds."""
