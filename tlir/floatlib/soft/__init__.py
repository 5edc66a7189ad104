"""Software floating point on machine words, written once for every target.

A kernel is a function of a *machine*: an object whose methods are the operations of one machine word. On
``NumpyMachine`` a kernel computes arrays; on an emitter the same calls build the code of a loop. Kernels have no
branches on data: both sides of a decision are computed and one is selected, so that all lanes of a vector take the same
path.
"""
