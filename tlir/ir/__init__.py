"""The graph: types, tensors of words, nodes, regions, and the declarations of the operations."""
