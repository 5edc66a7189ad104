"""A graph for people: as text, as a table, as DOT, SVG and HTML; and the inventory of operations and formats."""
