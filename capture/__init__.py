"""Standalone scripts that capture a JAX or PyTorch function as an artifact."""
