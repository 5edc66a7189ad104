"""Parts of ``tlir.passes.cast``: the formats that are meant, and words in another format."""
