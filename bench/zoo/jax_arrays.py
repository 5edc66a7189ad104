"""Arrays, images, signals, tables, random numbers and number formats in plain JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax

from bench.zoo import model
from bench.zoo.jax_numerics import ALL_FLOATS, of_dtypes
from bench.zoo.jax_written import normal


@model("jax")
def convolutions() -> tuple[Any, ...]:
    """Strides, dilations, groups, transposed, one and three dimensions, batch groups, patches, and gradients."""

    def run(p: Any, x: Any, line: Any, volume: Any) -> Any:
        names = ("NHWC", "HWIO", "NHWC")
        a = lax.conv_general_dilated(x, p["a"], (2, 1), [(1, 2), (0, 1)], (1, 2), (2, 1), names)
        b = lax.conv_general_dilated(x, p["b"], (1, 1), "SAME", dimension_numbers=names, feature_group_count=2)
        c = lax.conv_transpose(x, p["a"], (2, 2), "SAME", dimension_numbers=names)
        d = lax.conv_general_dilated(line, p["d"], (1,), [(4, 0)], (1,), (2,), ("NWC", "WIO", "NWC"))
        e = lax.conv_general_dilated(volume, p["e"], (1, 2, 1), "VALID")
        f = lax.conv_general_dilated(x, p["f"], (1, 1), "SAME", dimension_numbers=names, batch_group_count=2)
        g = lax.conv_general_dilated_patches(x, (2, 2), (2, 2), "VALID", dimension_numbers=names)
        return a, b, c, d, e, f, g

    shapes = {"a": (3, 3, 4, 2), "b": (3, 3, 2, 4), "d": (3, 2, 3), "e": (2, 1, 2, 2, 2), "f": (3, 3, 4, 2)}
    p = {name: normal(*shape, seed=k) / 3 for k, (name, shape) in enumerate(shapes.items())}
    args = p, normal(2, 6, 7, 4, seed=5), normal(2, 8, 2, seed=6), normal(1, 1, 4, 5, 4, seed=7)

    def loss(*args: Any) -> Any:
        results = run(*args)
        return sum(jnp.sum(jnp.sin(y)) for y in results), results

    return jax.grad(loss, (0, 1, 2, 3), has_aux=True), args


@model("jax")
def image_scaling() -> tuple[Any, ...]:
    def run(x: Any) -> Any:
        up = [jax.image.resize(x, (1, 9, 11, 2), kind) for kind in ("nearest", "bilinear", "bicubic", "lanczos3")]
        down = [jax.image.resize(x, (1, 3, 4, 2), kind, antialias=a) for kind in ("linear", "lanczos5") for a in (0, 1)]
        moved = jax.image.scale_and_translate(
            x[0], (8, 8, 2), (0, 1), jnp.array([1.3, 0.7]), jnp.array([0.2, -0.4]), "cubic"
        )
        grid = jnp.meshgrid(jnp.linspace(-1, 6, 5), jnp.linspace(0, 8, 5), indexing="ij")
        sampled = [jsp.ndimage.map_coordinates(x[0, ..., 0], grid, 1, mode) for mode in ("nearest", "wrap", "mirror")]
        return up, down, moved, sampled

    def loss(x: Any) -> Any:
        results = run(x)
        return sum(jnp.sum(y**2) for y in jax.tree.leaves(results)), results

    return jax.grad(loss, has_aux=True), (normal(1, 6, 8, 2),)


@of_dtypes({"": jnp.float32, "_float64": jnp.float64})
def special_functions(dtype: Any) -> tuple[Any, ...]:
    if dtype == jnp.float64:
        jax.config.update("jax_enable_x64", True)

    def run(x: Any, a: Any) -> Any:
        s = jsp.special
        u = jax.nn.sigmoid(x)
        return (
            *(s.gammaln(a), s.digamma(a), s.polygamma(1, a), s.zeta(a + 1.5, a), s.betaln(a, a + 1), s.gamma(x)),
            *(s.betainc(a, 1.5, u), s.gammainc(a, a * u), s.gammaincc(a, 2 * a), s.i0(x), s.i1e(x), s.i0e(x), s.i1(x)),
            *(s.expi(a), s.exp1(a), s.expn(2, a), s.erf(x), s.erfc(x), s.erfinv(2 * u - 1), s.erfcx(a)),
            *(s.ndtri(u), s.log_ndtr(5 * x), s.ndtr(x), s.entr(u), s.xlogy(a, u), s.xlog1py(x, u), s.logit(u)),
            *(s.kl_div(a, u), s.rel_entr(u, a), s.multigammaln(a + 2, 2), s.spence(a), s.dawsn(x), s.factorial(a)),
            *(s.poch(a, 2.0), s.boxcox(a, 0.5), s.hyp1f1(a, 2.0, x), s.bernoulli(4), s.owens_t(x, a)),
            *(*s.sici(a), *s.fresnel(a), s.comb(5.0, a)),
        )

    return run, (normal(6, dtype=dtype), jnp.abs(normal(6, seed=1, dtype=dtype)) + 0.3)


@model("jax")
def signals() -> tuple[Any, ...]:
    def run(x: Any, h: Any, image: Any, kernel: Any) -> Any:
        s = jsp.signal
        filtered = [s.convolve(x, h, mode) for mode in ("full", "same", "valid")]
        filtered += [s.correlate(x, h, "same"), s.fftconvolve(x, h), jnp.convolve(x, h, "same")]
        plane = s.convolve2d(image, kernel, "same"), s.correlate2d(image, kernel, "valid")
        times, places, windows = s.stft(x, nperseg=8, noverlap=4)
        back = s.istft(windows, nperseg=8, noverlap=4)[1]
        power = s.welch(x, nperseg=8)[1], s.csd(x, x[::-1], nperseg=8)[1]
        even = s.detrend(x), jsp.fft.dct(x), jsp.fft.idct(x), jnp.fft.fftshift(jnp.fft.hfft(windows[:, 0]))
        return filtered, plane, times, places, windows, back, power, even

    return run, (normal(32), normal(5, seed=1), normal(6, 7, seed=2), normal(3, 3, seed=3))


@model("jax")
def tables() -> tuple[Any, ...]:
    """Interpolation, fits, histograms, sets and orders."""

    def run(x: Any, y: Any, k: Any) -> Any:
        order = jnp.sort(x)
        return (
            *(jnp.interp(y, order, x, left=0.0), jnp.polyfit(x, y, 2), jnp.polyval(x[:3], y), jnp.digitize(x, order)),
            *(jnp.histogram(x, 5), jnp.histogram(x, 5, (-1, 1), weights=y), jnp.histogram2d(x, y, 3)[0]),
            *(jnp.searchsorted(order, y), jnp.searchsorted(order, x, side="right", method="sort")),
            jnp.unique(k, return_index=True, return_inverse=True, return_counts=True, size=6, fill_value=-1),
            *(jnp.lexsort((x, k)), lax.sort((k, x, y), num_keys=2), jnp.argsort(k, descending=True)),
            *(jnp.bincount(k, y, length=5), jnp.percentile(x, jnp.array([10, 50, 95.0])), jnp.nanmedian(x / k)),
            *(jnp.partition(x, 4)[4], jnp.cov(x, y), jnp.corrcoef(x, y), jnp.trapezoid(y, order), jnp.gradient(x)),
            *(jnp.unwrap(3 * x), jnp.setdiff1d(k, jnp.array([1, 2]), size=6), jnp.nonzero(k > 1, size=8)),
            *(jnp.intersect1d(k, jnp.array([0, 3, 9]), size=3), jnp.isin(k, jnp.array([0, 3])), jnp.diff(x, 2)),
            *(jnp.packbits(x > 0), jnp.unpackbits(k.astype(jnp.uint8)), jnp.unravel_index(k, (2, 3)), jnp.ptp(x)),
            *(jnp.piecewise(x, [x < 0, x > 1], [-1.0, 1.0, lambda x: x**2]), jnp.select([x < 0, y > 0], [x, y])),
            *(jnp.argwhere(x > 0, size=4), jnp.nanargmax(x), jnp.average(x, weights=jnp.abs(y)), jnp.vander(x[:3])),
            *(lax.top_k(k, 3), jnp.cumprod(y), jnp.nancumsum(x), jnp.heaviside(x, 0.5), jnp.i0(x), jnp.sinc(x)),
            *(jnp.roll(x, 3), jnp.insert(x, 2, 9.0), jnp.delete(x, 3), jnp.resize(x, (3, 5)), jnp.tri(3, 4, 1)),
        )

    return run, (normal(9), normal(9, seed=1), jnp.array([3, 0, 2, 3, 1, 0, 4, 2, 3]))


@model("jax")
def random_distributions() -> tuple[Any, ...]:
    """The distributions of jax.random that ``random_draws`` leaves out."""

    def run(key: Any, p: Any, cov: Any) -> Any:
        r = jax.random
        keys = iter(r.split(key, 40))
        names = [
            "gumbel",
            "laplace",
            "logistic",
            "cauchy",
            "exponential",
            "rademacher",
            "maxwell",
        ]
        plain = [getattr(r, name)(next(keys), shape=(5,)) for name in names]
        shaped = [
            r.double_sided_maxwell(next(keys), 0.3, 2.0, (4,)),
            *(r.multivariate_normal(next(keys), p[:3], cov, (2,)), r.t(next(keys), 4.0, (4,)), r.ball(next(keys), 3)),
            *(r.weibull_min(next(keys), 1.0, 2.0, (4,)), r.pareto(next(keys), 2.0, (4,)), r.orthogonal(next(keys), 3)),
            *(r.chisquare(next(keys), 3.0, shape=(3,)), r.f(next(keys), 3.0, 4.0, shape=(3,))),
            *(r.loggamma(next(keys), 0.3, (3,)), r.lognormal(next(keys), 0.5, (4,)), r.rayleigh(next(keys), 1.0, (4,))),
            *(r.wald(next(keys), 1.0, (4,)), r.triangular(next(keys), 0.0, 0.3, 1.0, (4,)), r.geometric(next(keys), p)),
            *(r.choice(next(keys), p, (3,), p=jax.nn.softmax(p)), r.permutation(next(keys), cov, 1, independent=True)),
            *(r.binomial(next(keys), 6, 0.3, (4,)), r.multinomial(next(keys), 8, jax.nn.softmax(p))),
            *(r.randint(next(keys), (6,), 0, 200, jnp.uint8), r.bits(next(keys), (3,), jnp.uint16)),
            *(r.categorical(next(keys), p, shape=(3,), replace=False), r.generalized_normal(next(keys), 1.5, (3,))),
            r.fold_in(next(keys), 7),
        ]
        return plain, shaped

    return run, (jax.random.key(5), jax.nn.sigmoid(normal(5)), jnp.eye(3) + 0.3)


@of_dtypes(ALL_FLOATS)
def random_formats(dtype: Any) -> tuple[Any, ...]:
    """Draws of a format of its own, by the three implementations of keys."""

    def run(*keys: Any) -> Any:
        def draws(key: Any) -> Any:
            a, b, c, d = jax.random.split(key, 4)
            kept = jax.random.bernoulli(a, 0.8, (3, 4))
            x = jax.random.normal(b, (3, 4), dtype)
            return jnp.where(kept, x / 0.8, 0), jax.random.uniform(c, (5,), dtype), jax.random.gumbel(d, (4,), dtype)

        return [draws(key) for key in keys]

    return run, tuple(jax.random.key(k, impl=impl) for k, impl in enumerate(("threefry2x32", "rbg", "unsafe_rbg")))


@model("jax")
def number_formats() -> tuple[Any, ...]:
    def run(x: Any, k: Any) -> Any:
        mantissa, exponent = jnp.frexp(x)
        kinds = "float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e3m4 float4_e2m1fn bfloat16 float16 int4 uint8"
        cast = [x.astype(kind).astype(jnp.float32) for kind in kinds.split()]
        words = lax.bitcast_convert_type(x, jnp.uint32)
        eights = lax.bitcast_convert_type(x, jnp.uint8)
        return (
            *(lax.reduce_precision(x, 5, 10), lax.reduce_precision(x, 8, 7), jnp.nextafter(x, 0 * x), words, eights),
            *(mantissa, exponent, jnp.ldexp(x, k), jnp.copysign(x, -x), jnp.signbit(x), jnp.modf(x), cast),
            *(lax.clz(words), lax.population_count(words), words >> 9, lax.shift_right_arithmetic(k, 1), k << 2, ~k),
            *(jnp.left_shift(k, 33), jnp.fmod(x, 0.3), jnp.remainder(x, -0.3), k // 3, -k // 3, k % -3, jnp.rint(x)),
            *(jnp.float_power(jnp.abs(x), 0.3), jnp.cbrt(x), jnp.logaddexp2(x, 1.0), jnp.gcd(k, 12), jnp.lcm(k, 4)),
        )

    return run, (jnp.array([0.0, -1.5, 3.1e-3, 300.0, -7e4, 0.06]), jnp.arange(-2, 4))


@model("jax")
def complex_spectra() -> tuple[Any, ...]:
    """The spectral norm of a complex matrix by power iteration, its factors, and gradients of complex functions."""

    def norm(a: Any) -> Any:
        def step(_: Any, v: Any) -> Any:
            w = a.conj().T @ (a @ v)
            return w / jnp.linalg.norm(w)

        return jnp.linalg.norm(a @ lax.fori_loop(0, 15, step, jnp.ones(a.shape[1], a.dtype)))

    def run(a: Any) -> Any:
        hermitian = a @ a.conj().T + jnp.eye(4)
        values, vectors = jnp.linalg.eigh(hermitian)
        q, r = jnp.linalg.qr(a)
        spectrum = jnp.fft.fft2(a)
        powers = jnp.exp(1j * a.real) * jnp.sqrt(a) + jnp.log(a) ** 2 + jnp.tanh(a) / jnp.cos(a)
        rebuilt = (vectors * values) @ vectors.conj().T, q @ r, jnp.linalg.cholesky(hermitian)
        solved = jnp.linalg.solve(hermitian, a), jnp.linalg.svd(a, compute_uv=False), jnp.linalg.slogdet(hermitian)
        return norm(a), jax.grad(norm)(a), spectrum, powers, jnp.angle(a), rebuilt, solved

    return run, (normal(4, 3).astype(jnp.complex64) + 1j * normal(4, 3, seed=1),)


@model("jax")
def matrix_functions() -> tuple[Any, ...]:
    def run(a: Any, b: Any, diagonal: Any) -> Any:
        s = a @ a.T + 4 * jnp.eye(4)
        factors = jsp.linalg.lu_factor(a)
        lower = jsp.linalg.cholesky(s, lower=True)
        return (
            *(jsp.linalg.lu_solve(factors, b), jsp.linalg.cho_solve((lower, True), b), jsp.linalg.expm(a / 4)),
            *(jsp.linalg.solve(s, b, assume_a="pos"), jnp.linalg.lstsq(a, b)[0], jnp.linalg.matrix_rank(a)),
            *(jnp.linalg.matrix_power(a / 4, 5), jnp.linalg.cond(s), jnp.linalg.norm(a, "nuc"), jsp.linalg.det(a)),
            *(jsp.linalg.toeplitz(b[:, 0]), jsp.linalg.block_diag(a, b), jsp.linalg.polar(s)[1]),
            *(jnp.linalg.multi_dot([a, s, b]), jnp.linalg.tensorinv(s.reshape(4, 2, 2), 1), jnp.cross(a[:, :3], b[0])),
            *(lax.linalg.tridiagonal_solve(diagonal, 4 + diagonal, diagonal, b), jnp.linalg.pinv(b)),
            *(jsp.linalg.eigh_tridiagonal(diagonal + 1, diagonal[1:], eigvals_only=True), jnp.trace(a, 1)),
        )

    return run, (normal(4, 4), normal(4, 3, seed=1), normal(4, seed=2).at[0].set(0.0))


@model("jax")
def indexing() -> tuple[Any, ...]:
    """Reads and writes of the forms that NumPy's indices have, with modes, and their gradients."""
    at = np.array([[0, 2], [1, 1]]), np.array([3, -1])

    def run(x: Any, i: Any, j: Any, v: Any) -> Any:
        return (
            *(x[i, j], x[:, None, i], x[..., ::-2, 1], x[at[0], :, at[1]], x[1:, i][0], x.at[0, i, j].get(mode="clip")),
            *(x.at[:, i].set(0.5), x.at[0, i, j].add(v), x.at[..., j].multiply(2), x.at[0, i].min(v[:, None])),
            *(x.at[0, i].max(v[:, None], mode="drop"), x.at[1, 2].power(2), x.at[i].divide(3)),
            *(
                jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
                jnp.put_along_axis(x, i[None, :, None], 7, 1, inplace=False),
            ),
            *(
                jnp.choose(i % 2, (v, -v), mode="clip"),
                jnp.take(x, j, 2, mode="wrap"),
                jnp.diagonal(x, 1, 1, 2),
                jnp.fill_diagonal(x[0], 1, inplace=False),
            ),
            *(
                lax.dynamic_index_in_dim(x, i[1], 1),
                lax.dynamic_slice(x, (0, i[2], -2), (1, 2, 3)),
                jnp.flip(x, (0, 2)),
            ),
        )

    def loss(x: Any, i: Any, j: Any, v: Any) -> Any:
        results = run(x, i, j, v)
        return sum(jnp.sum(y**2) for y in results), results

    args = normal(2, 3, 4), jnp.array([0, 2, 5]), jnp.array([3, -1, 0]), normal(3, seed=1)
    return jax.grad(loss, (0, 3), has_aux=True), args
