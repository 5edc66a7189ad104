"""Kernels: loops over output indices, indexed loads and stores, and typed scalar operations."""
