"""Kernels as code for this processor, through LLVM."""
