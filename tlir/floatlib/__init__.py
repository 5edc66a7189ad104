"""Binary floating-point formats of any size and arithmetic on their words, rounded once. Imports nothing of tlir."""
