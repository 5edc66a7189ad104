"""The float32 operands whose results lie nearest to a midpoint of two float32 numbers, by function."""

HARDEST: dict[str, list[int]] = {
    "exponential": [0xC16912CD, 0xBBF0EDF1, 0x377EFF81, 0xBAE0E25C, 0xB3000000, 0x39C6BE5B],
}
