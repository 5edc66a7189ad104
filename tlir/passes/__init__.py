"""Passes: what is worked out about a graph, and what turns one graph into another."""
