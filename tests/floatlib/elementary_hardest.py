"""Operands whose results lie nearest to a midpoint of two numbers.

Those of float32 by function, nearest first: found by computing all operands (for odd and even functions those of one
sign, for tan those up to 2**20, for rsqrt and cbrt one period of the exponent) by the kernels, and by ordering those
that these leave undecided by MPFR with 200 bits. The distances are 2**-53 to 2**-23 units in the last place. Those of
float64 have their sources beside them.
"""

HARDEST: dict[str, list[int]] = {
    "exponential": [0xC16912CD, 0xBBF0EDF1, 0x377EFF81, 0xBAE0E25C, 0xB3000000, 0x39C6BE5B],
    "exponential_minus_one": [0x3DC252DD, 0x3A254E7A, 0x34CA62C1, 0xB675CBFC, 0x33B504F3, 0xBB7B3B6C],
    "exp2": [0xB52D1F9A, 0xBCF3A937, 0x3B429D37, 0xB8D3D026, 0xBAEC2B40, 0x3A07857C],
    "logistic": [0xB3800000, 0x34000000, 0xB4400000, 0x34C00000, 0xB4A00000, 0xB4E00000],
    "tanh": [0x3AC37DE2, 0x3EEE0566, 0x3CD41B91, 0x40ACB4D0, 0x40C5E8CA, 0x3D7C3055],
    "sinh": [0x3A1285FF, 0x3B36AA1F, 0x3F7DF258, 0x3D09C4D8, 0x3F99144C, 0x4288942B],
    "cosh": [0x3A6F7750, 0x3D609528, 0x3A87C3B6, 0x3B43F588, 0x39B504F3, 0x4288942B],
    "log": [0x65D890D3, 0x4C5D65A5, 0x4D604EBE, 0x41178FEB, 0x1F116AB8, 0x66A8C860],
    "log2": [0x3EA07AB9, 0x40207AB9, 0x002452A4, 0x0048A548, 0x00914A90, 0x01114A90],
    "log10": [0x610567E4, 0x62A6C1DD, 0x45BDEDC8, 0x0EFEEE7A, 0x604DF02C, 0x120B93DC],
    "log_plus_one": [0x35400003, 0xB53FFFFD, 0x65D890D3, 0x3EFD81AD, 0x3710001B, 0xB70FFFE5],
    "asinh": [0x655890D3, 0x4CE04EBE, 0x4BDD65A5, 0x6628C860, 0x6EB1A8EC, 0x5E68984E],
    "acosh": [0x655890D3, 0x4BDD65A5, 0x4CE04EBE, 0x6628C860, 0x6EB1A8EC, 0x5E68984E],
    "atanh": [0x3A71E7A1, 0x39B89BA2, 0x3AD637EB, 0x3DDC2ECE, 0x3DCD9576, 0x3B06F2F9],
    "sine": [0x73243F06, 0x46199998, 0x55CAFB2A, 0x67A9242B, 0x4371ADE3, 0x5F208D82],
    "cosine": [0x6115CB11, 0x59443C0A, 0x5F18B878, 0x5922AA80, 0x61703976, 0x55E5235D],
    "tan": [0x408174DD, 0x453C5846, 0x3E19205E, 0x40E67F59, 0x451E0885, 0x39B89BA2],
    "asin": [0x3F083A1A, 0x3DE5FA1E, 0x3D07959C, 0x3D09BF86, 0x39E89768, 0x3D17817C],
    "acos": [0x39826222, 0x328885A3, 0xBC406CCD, 0x3C8A2F9B, 0xBA9D5F75, 0x3B7D281B],
    "atan": [0x3D8D6B23, 0x3AD637FA, 0x3B7C1BC9, 0x4C700518, 0x40357F1D, 0x4C700517],
    "erf": [0x3940EAD6, 0x39C0057D, 0x3B25A39D, 0x3F043A75, 0x3AA60E18, 0x3C7C9E9F],
    "erfc": [0xB76C9F62, 0xBB6C9B37, 0xB4C683CC, 0x344683CC, 0x37CA4803, 0x36EC9F62],
    "rsqrt": [0x403A18E3],
    "cbrt": [0x400353B5, 0x40526132, 0x4021B8E7, 0x3FCE4D58, 0x400F7652, 0x40CAC367],
}

PUBLISHED = [
    ("exponential", "0x1.9e9cbbfd6080bp-31"),
    ("exp2", "0x1.e4596526bf94dp-10"),
    ("log2", "0x1.b4ebe40c95a01p+0"),
    ("log_plus_one", "0x1.8000000000003p-50"),
    ("sine", "0x1.598bae9e632f6p-7"),
    ("cosine", "0x1.34ec2f9fc9c00p+1"),
    ("tan", "0x1.dffffffffff1fp-22"),
    ("tan", "0x1.50486b2f87014p-5"),
    ("asin", "0x1.c373ff4aad79bp-14"),
    ("atan", "0x1.22e8d75e2bc7fp-11"),
]
"""Operands whose results are among the nearest to a midpoint of all binary64 operands of their range: V. Lefevre and
J.-M. Muller, Worst cases for correct rounding of the elementary functions in double precision, ARITH-15 (2001), and
later tables of theirs."""

FOUND = [
    ("exponential", "0x1.4dbbb939ac516p-4"),
    ("exponential", "0x1.37b1ae2064b24p+1"),
    ("exponential_minus_one", "0x1.035dd1c003695p-2"),
    ("exponential_minus_one", "0x1.cf7eaa13615c1p+0"),
    ("exp2", "0x1.476f881862cb1p-1"),
    ("exp2", "0x1.1b03850deea68p-4"),
    ("logistic", "0x1.fa79264eec106p+2"),
    ("logistic", "0x1.d625b96054509p-5"),
    ("tanh", "0x1.fdb0270010dddp-3"),
    ("tanh", "0x1.5199b39179ca1p+0"),
    ("sinh", "0x1.9178ce7173a40p+1"),
    ("sinh", "0x1.549e722267577p-3"),
    ("cosh", "0x1.f6f51116424e2p+1"),
    ("cosh", "0x1.bdeba7552f059p-5"),
    ("log", "0x1.3beea07ae435bp+1"),
    ("log", "0x1.444b4059c7dc8p-3"),
    ("log2", "0x1.4a3393037fe8bp+1"),
    ("log2", "0x1.5a23342218316p-5"),
    ("log10", "0x1.83849bc8fa423p+2"),
    ("log10", "0x1.dea2eaeff2a30p-4"),
    ("log_plus_one", "0x1.189e0bdc03a84p-2"),
    ("log_plus_one", "0x1.0f552c4d30322p-6"),
    ("asinh", "0x1.cd960b67716f9p+1"),
    ("asinh", "0x1.11410fa167f8bp+0"),
    ("acosh", "0x1.2923b3e5655f8p+0"),
    ("acosh", "0x1.02c51d3398421p+2"),
    ("atanh", "0x1.cc8fa06e99259p-2"),
    ("atanh", "0x1.0178f55f59c78p-7"),
    ("sine", "0x1.a41fcd5a0bea5p+0"),
    ("sine", "0x1.8a354ffcb203ap-4"),
    ("cosine", "0x1.f177010c6c9efp-2"),
    ("cosine", "0x1.84f254268a35ep+1"),
    ("tan", "0x1.1b3abd78bb4e2p-1"),
    ("tan", "0x1.21592957b194ap-5"),
    ("asin", "0x1.f4a559600092cp-7"),
    ("asin", "0x1.52f657f2f24c0p-3"),
    ("acos", "0x1.9cce1e6f7fdbap-1"),
    ("acos", "0x1.fef2e1a843917p-2"),
    ("atan", "0x1.5875985c43dfap-1"),
    ("atan", "0x1.40d0fcf95b8c8p-5"),
    ("erf", "0x1.874e112c84ceep+1"),
    ("erf", "0x1.778486c284e90p-1"),
    ("erfc", "0x1.3bd5e06925b7ep+2"),
    ("erfc", "0x1.29b7bf8cbcb52p-3"),
    ("atan2", "0x1.35b2d661e29e8p-4", "0x1.f88704b1f4973p-3"),
    ("atan2", "0x1.fb812295824ebp-4", "0x1.27965672530a3p-5"),
    ("power", "0x1.161cd63898793p-3", "0x1.1b9ae19fe6612p-6"),
    ("power", "0x1.8815e3a929bcdp-5", "0x1.b690e01006076p-6"),
]
"""The hardest of some 10**8 random operands of each function."""
