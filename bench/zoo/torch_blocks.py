"""Building blocks of published vision and language models in PyTorch, written anew."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from bench.zoo import model
from bench.zoo.torch_written import seeded


class ResidualUnit(nn.Module):
    """Group norm, swish and convolution, twice, with the embedding of a time step between."""

    def __init__(self, inner: int, outer: int, emb: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.proj = nn.Linear(emb, outer)
        self.skip: nn.Module = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.proj(F.silu(emb))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class DenoisingUNet(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.width = width
        self.embed = nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, 32))
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList([ResidualUnit(width, width, 32), ResidualUnit(width, 2 * width, 32)])
        self.shrink = nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1)
        self.middle = ResidualUnit(2 * width, 2 * width, 32)
        self.up = nn.ModuleList([ResidualUnit(4 * width, width, 32), ResidualUnit(2 * width, width, 32)])
        self.head = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        half = self.width // 2
        frequencies = torch.exp(-math.log(10000) * torch.arange(half, dtype=x.dtype, device=x.device) / half)
        angles = t[:, None].to(x.dtype) * frequencies[None]
        emb = self.embed(torch.cat([angles.cos(), angles.sin()], dim=-1))
        h = self.stem(x)
        skips = []
        for unit in self.down:
            h = unit(h, emb)
            skips.append(h)
        h = self.middle(self.shrink(h), emb)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        for unit in self.up:
            h = unit(torch.cat([h, skips.pop()], dim=1), emb)
        return self.head(F.silu(h))


@model("torch")
def denoising_unet_group_norm() -> tuple[Any, ...]:
    return seeded(DenoisingUNet).eval(), (torch.randn(2, 3, 16, 16), torch.tensor([3, 417]))


@model("torch")
def denoising_unet_group_norm_float16() -> tuple[Any, ...]:
    return seeded(DenoisingUNet).eval().half(), (torch.randn(2, 3, 16, 16).half(), torch.tensor([3, 417]))


class InvertedResidual(nn.Module):
    """Expansion, depthwise convolution, squeeze and excitation, projection."""

    def __init__(
        self, inner: int, outer: int, stride: int, expand: int = 4, act: type[nn.Module] = nn.Hardswish
    ) -> None:
        super().__init__()
        hidden = inner * expand
        self.use_skip = stride == 1 and inner == outer
        self.expand = nn.Sequential(nn.Conv2d(inner, hidden, 1, bias=False), nn.BatchNorm2d(hidden, eps=1e-3), act())
        self.depthwise = nn.Sequential(
            nn.Conv2d(hidden, hidden, 5, stride, 2, groups=hidden, bias=False), nn.BatchNorm2d(hidden, eps=1e-3), act()
        )
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(hidden, 8, 1), nn.ReLU(True), nn.Conv2d(8, hidden, 1), nn.Hardsigmoid()
        )
        self.project = nn.Sequential(nn.Conv2d(hidden, outer, 1, bias=False), nn.BatchNorm2d(outer, eps=1e-3))

    def forward(self, x: Tensor) -> Tensor:
        y = self.depthwise(self.expand(x))
        y = self.project(y * self.squeeze(y))
        return x + y if self.use_skip else y


def inverted_residuals() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU6(inplace=True),
        InvertedResidual(8, 8, 1),
        InvertedResidual(8, 12, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(12, 7),
    )


@model("torch")
def inverted_residual_squeeze_excite() -> tuple[Any, ...]:
    return seeded(inverted_residuals).eval(), (torch.randn(2, 3, 24, 24),)


@model("torch")
def inverted_residual_squeeze_excite_bfloat16() -> tuple[Any, ...]:
    return seeded(inverted_residuals).eval().bfloat16(), (torch.randn(2, 3, 24, 24).bfloat16(),)


class ConvNextBlock(nn.Module):
    """Depthwise 7x7, layer norm over channels, a pointwise perceptron with global response normalisation."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pw1, self.pw2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.gamma_response = nn.Parameter(torch.full((1, 1, 1, 4 * dim), 0.1))
        self.beta_response = nn.Parameter(torch.zeros(1, 1, 1, 4 * dim))
        self.scale = nn.Parameter(1e-2 * torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = F.gelu(self.pw1(y))
        response = torch.norm(y, p=2, dim=(1, 2), keepdim=True)
        y = (
            self.gamma_response * (y * (response / (response.mean(dim=-1, keepdim=True) + 1e-6)))
            + self.beta_response
            + y
        )
        return x + (self.scale * self.pw2(y)).permute(0, 3, 1, 2)


@model("torch")
def convnext_block() -> tuple[Any, ...]:
    return seeded(lambda: ConvNextBlock(12)).eval(), (torch.randn(2, 12, 14, 14),)


class WindowAttention(nn.Module):
    """Shifted windows with a table of relative position biases and a mask between what the shift brings together."""

    def __init__(self, dim: int, window: int, heads: int, size: int) -> None:
        super().__init__()
        self.dim, self.window, self.heads, self.shift = dim, window, heads, window // 2
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.table = nn.Parameter(0.02 * torch.randn((2 * window - 1) ** 2, heads))
        coords = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", relative[..., 0] * (2 * window - 1) + relative[..., 1])
        regions = torch.zeros(1, size, size, 1)
        cuts = (slice(0, -window), slice(-window, -self.shift), slice(-self.shift, None))
        for k, (rows, columns) in enumerate((a, b) for a in cuts for b in cuts):
            regions[:, rows, columns, :] = k
        parts = self.partition(regions).squeeze(-1)
        apart = parts[:, None, :] - parts[:, :, None]
        self.register_buffer("mask", apart.masked_fill(apart != 0, -100.0).masked_fill(apart == 0, 0.0))

    def partition(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        x = x.view(b, h // self.window, self.window, w // self.window, self.window, c)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.window * self.window, c)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        windows = self.partition(torch.roll(x, (-self.shift, -self.shift), dims=(1, 2)))
        n = windows.shape[1]
        q, k, v = self.qkv(windows).reshape(-1, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        bias = self.table[self.index.view(-1)].view(n, n, -1).permute(2, 0, 1).contiguous()
        scores = scores + bias.unsqueeze(0)
        scores = scores.view(b, -1, self.heads, n, n) + self.mask[None, :, None]
        y = (scores.view(-1, self.heads, n, n).softmax(dim=-1) @ v).transpose(1, 2).reshape(-1, n, c)
        y = self.proj(y).view(b, h // self.window, w // self.window, self.window, self.window, c)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return x + torch.roll(y, (self.shift, self.shift), dims=(1, 2))


@model("torch")
def shifted_window_attention() -> tuple[Any, ...]:
    return seeded(lambda: WindowAttention(16, 4, 2, 8)).eval(), (torch.randn(2, 8, 8, 16),)


@model("torch")
def shifted_window_attention_bfloat16() -> tuple[Any, ...]:
    return seeded(lambda: WindowAttention(16, 4, 2, 8)).eval().bfloat16(), (torch.randn(2, 8, 8, 16).bfloat16(),)


class SelectiveScan(nn.Module):
    """A selective state space layer, its recurrence a loop over time."""

    def __init__(self, dim: int, state: int = 4, rank: int = 2) -> None:
        super().__init__()
        self.state, self.rank = state, rank
        self.into, self.out = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(2 * dim, dim, bias=False)
        self.conv = nn.Conv1d(2 * dim, 2 * dim, 4, groups=2 * dim, padding=3)
        self.select = nn.Linear(2 * dim, rank + 2 * state, bias=False)
        self.step = nn.Linear(rank, 2 * dim)
        self.log_a = nn.Parameter(torch.log(torch.arange(1, state + 1).float().repeat(2 * dim, 1)))
        self.skip = nn.Parameter(torch.ones(2 * dim))

    def forward(self, u: Tensor) -> Tensor:
        length = u.shape[1]
        x, gate = self.into(u).chunk(2, dim=-1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :length].transpose(1, 2))
        delta, b, c = torch.split(self.select(x), [self.rank, self.state, self.state], dim=-1)
        delta = F.softplus(self.step(delta))
        a = -torch.exp(self.log_a.float())
        decay = torch.exp(torch.einsum("bld,dn->bldn", delta, a))
        drive = torch.einsum("bld,bln,bld->bldn", delta, b, x)
        h = torch.zeros_like(drive[:, 0])
        found = []
        for t in range(length):
            h = decay[:, t] * h + drive[:, t]
            found.append(torch.einsum("bdn,bn->bd", h, c[:, t]))
        y = torch.stack(found, dim=1) + x * self.skip
        return self.out(y * F.silu(gate))


@model("torch")
def selective_scan_loop() -> tuple[Any, ...]:
    return seeded(lambda: SelectiveScan(6)).eval(), (torch.randn(2, 9, 6),)


class TimeMixing(nn.Module):
    """The numerically safe form of the weighted key-value average with exponential decay."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.decay, self.first = nn.Parameter(torch.randn(dim)), nn.Parameter(torch.randn(dim))
        self.mix = nn.ParameterList([torch.rand(1, 1, dim) for _ in range(3)])
        self.shift = nn.ZeroPad2d((0, 0, 1, -1))
        self.k, self.v, self.r, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        last = self.shift(x)
        k, v, r = (layer(x * m + last * (1 - m)) for layer, m in zip((self.k, self.v, self.r), self.mix, strict=True))
        top = torch.full_like(k[:, 0], -1e38)
        num, den = torch.zeros_like(top), torch.zeros_like(top)
        w, outputs = -torch.exp(self.decay), []
        for t in range(x.shape[1]):
            kt, vt = k[:, t], v[:, t]
            peak = torch.maximum(top, self.first + kt)
            a, b = torch.exp(top - peak), torch.exp(self.first + kt - peak)
            outputs.append((a * num + b * vt) / (a * den + b))
            peak = torch.maximum(top + w, kt)
            a, b = torch.exp(top + w - peak), torch.exp(kt - peak)
            num, den, top = a * num + b * vt, a * den + b, peak
        return self.o(torch.sigmoid(r) * torch.stack(outputs, 1))


@model("torch")
def rwkv_time_mixing() -> tuple[Any, ...]:
    return seeded(lambda: TimeMixing(8)).eval(), (torch.randn(2, 7, 8),)


class SparseExperts(nn.Module):
    """Every token goes to two experts of four; results are scattered back by index_add."""

    def __init__(self, dim: int, experts: int = 4, top_k: int = 2) -> None:
        super().__init__()
        self.top_k, self.gate = top_k, nn.Linear(dim, experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(experts, dim, 2 * dim) * dim**-0.5)
        self.w2 = nn.Parameter(torch.randn(experts, 2 * dim, dim) * dim**-0.5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        flat = x.reshape(-1, x.shape[-1])
        probabilities = F.softmax(self.gate(flat), dim=-1, dtype=torch.float32)
        weights, chosen = torch.topk(probabilities, self.top_k, dim=-1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        tokens = torch.arange(flat.shape[0]).repeat_interleave(self.top_k)
        order = torch.argsort(chosen.reshape(-1), stable=True)
        experts, tokens = chosen.reshape(-1)[order], tokens[order]
        hidden = F.silu(torch.bmm(flat[tokens][:, None], self.w1[experts]))
        y = torch.bmm(hidden, self.w2[experts])[:, 0] * weights.reshape(-1)[order][:, None]
        load = torch.zeros(self.w1.shape[0]).scatter_add(0, experts, torch.ones(experts.shape[0]))
        balance = (load / load.sum() * probabilities.mean(0)).sum() * self.w1.shape[0]
        return torch.zeros_like(flat).index_add_(0, tokens, y).view_as(x), balance


@model("torch")
def experts_sorted_and_scattered() -> tuple[Any, ...]:
    return seeded(lambda: SparseExperts(8)).eval(), (torch.randn(2, 6, 8),)


@model("torch")
def experts_sorted_and_scattered_bfloat16() -> tuple[Any, ...]:
    return seeded(lambda: SparseExperts(8)).eval().bfloat16(), (torch.randn(2, 6, 8).bfloat16(),)


class Codebook(nn.Module):
    """Nearest code by squared distance, straight-through, with the exponential moving averages of training."""

    def __init__(self, codes: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("embed", torch.randn(dim, codes))
        self.register_buffer("size", torch.ones(codes))
        self.register_buffer("average", self.embed.clone())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        flat = x.permute(0, 2, 3, 1).reshape(-1, self.embed.shape[0])
        distance = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embed + self.embed.pow(2).sum(0, keepdim=True)
        codes = (-distance).max(1).indices
        hot = F.one_hot(codes, self.embed.shape[1]).to(flat.dtype)
        codes = codes.view(x.shape[0], *x.shape[2:])
        found = F.embedding(codes, self.embed.transpose(0, 1)).permute(0, 3, 1, 2)
        if self.training:
            self.size.mul_(0.99).add_(hot.sum(0), alpha=0.01)
            self.average.mul_(0.99).add_(flat.t() @ hot, alpha=0.01)
            n = self.size.sum()
            smoothed = (self.size + 1e-5) / (n + self.size.shape[0] * 1e-5) * n
            self.embed.copy_(self.average / smoothed.unsqueeze(0))
        return x + (found - x).detach(), (found.detach() - x).pow(2).mean(), codes


@model("torch")
def codebook_with_moving_averages() -> tuple[Any, ...]:
    return seeded(lambda: Codebook(16, 6)).train(), (torch.randn(2, 6, 5, 5),)


class RotaryDecoderStep(nn.Module):
    """RMS norm, rotary embedding, grouped queries and a cache that is written at a position."""

    def __init__(self, dim: int = 16, heads: int = 4, groups: int = 2) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, dim // heads
        self.norm = nn.RMSNorm(dim, eps=1e-6)
        self.q, self.o = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.k, self.v = (nn.Linear(dim, groups * self.size, bias=False) for _ in range(2))
        self.register_buffer("inv", 1.0 / (10000 ** (torch.arange(0, self.size, 2).float() / self.size)))

    def rotate(self, x: Tensor, position: Tensor) -> Tensor:
        angles = position[:, None].float() * self.inv
        turn = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn[:, None]).flatten(3).type_as(x)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        b, t, _ = x.shape
        y = self.norm(x)
        q = self.rotate(self.q(y).view(b, t, self.heads, self.size), position)
        k = self.rotate(self.k(y).view(b, t, self.groups, self.size), position)
        keys = keys.index_copy(1, position, k)
        values = values.index_copy(1, position, self.v(y).view(b, t, self.groups, self.size))
        repeat = self.heads // self.groups
        k_all = keys[:, :, :, None].expand(-1, -1, -1, repeat, -1).flatten(2, 3).transpose(1, 2)
        v_all = values[:, :, :, None].expand(-1, -1, -1, repeat, -1).flatten(2, 3).transpose(1, 2)
        allowed = torch.arange(keys.shape[1])[None, :] <= position[:, None]
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k_all, v_all, attn_mask=allowed)
        return x + self.o(y.transpose(1, 2).reshape(b, t, -1)), keys, values


def decoder_step(dtype: torch.dtype) -> tuple[Any, ...]:
    net = seeded(RotaryDecoderStep).eval().to(dtype)
    net.inv = net.inv.float()
    cache = torch.randn(2, 2, 12, 2, 4).to(dtype)
    return net, (torch.randn(2, 1, 16).to(dtype), cache[0], cache[1], torch.tensor([5]))


@model("torch")
def rotary_grouped_cache_step() -> tuple[Any, ...]:
    return decoder_step(torch.float32)


@model("torch")
def rotary_grouped_cache_step_bfloat16() -> tuple[Any, ...]:
    return decoder_step(torch.bfloat16)


class LowRank(nn.Module):
    """A frozen linear layer with a trained low-rank update, and weights normalised by column (DoRA)."""

    def __init__(self, inner: int, outer: int, rank: int = 2) -> None:
        super().__init__()
        self.base = nn.Linear(inner, outer).requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, inner) / inner**0.5)
        self.b = nn.Parameter(torch.randn(outer, rank) * 0.1)
        self.magnitude = nn.Parameter(self.base.weight.norm(p=2, dim=1, keepdim=True).detach())

    def forward(self, x: Tensor) -> Tensor:
        weight = self.base.weight + 2.0 * (self.b @ self.a)
        direction = weight / weight.norm(p=2, dim=1, keepdim=True)
        return F.linear(x, self.magnitude * direction, self.base.bias)


@model("torch")
def low_rank_update() -> tuple[Any, ...]:
    return seeded(lambda: LowRank(12, 8)).eval(), (torch.randn(3, 5, 12),)


@model("torch")
def low_rank_update_gradient() -> tuple[Any, ...]:
    net = seeded(lambda: LowRank(12, 8))
    x, y = torch.randn(4, 12), torch.randn(4, 8)
    trained = {name: p.detach() for name, p in net.named_parameters() if not name.startswith("base")}

    def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.huber_loss(torch.func.functional_call(net, parameters, (x,)), y, delta=0.5)

    return torch.func.grad_and_value(loss), (trained, x, y)


class DepthToSpace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.PReLU(12), nn.Conv2d(12, 12, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        big = F.pixel_shuffle(self.body(x), 2) + F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        return F.pixel_unshuffle(big.clamp(0, 1), 2)


@model("torch")
def depth_to_space() -> tuple[Any, ...]:
    return seeded(DepthToSpace).eval(), (torch.rand(1, 3, 9, 10),)


class DeformableSampling(nn.Module):
    """Offsets for every tap of a 3x3 kernel, sampled bilinearly, modulated and mixed."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.offset = nn.Conv2d(inner, 27, 3, padding=1)
        self.weight = nn.Parameter(torch.randn(outer, inner, 9) / 5)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        raw = self.offset(x)
        dy, dx = raw[:, :9], raw[:, 9:18]
        strength = torch.sigmoid(raw[:, 18:])
        ky, kx = torch.meshgrid(torch.arange(-1, 2), torch.arange(-1, 2), indexing="ij")
        y = torch.arange(h).view(1, 1, h, 1) + ky.reshape(1, 9, 1, 1) + dy
        xs = torch.arange(w).view(1, 1, 1, w) + kx.reshape(1, 9, 1, 1) + dx
        grid = torch.stack([2 * xs / (w - 1) - 1, 2 * y / (h - 1) - 1], dim=-1).reshape(b, 9 * h, w, 2)
        taps = F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True).view(b, c, 9, h, w)
        return torch.einsum("bckhw,ock->bohw", taps * strength[:, None], self.weight)


@model("torch")
def deformable_sampling() -> tuple[Any, ...]:
    return seeded(lambda: DeformableSampling(4, 5)).eval(), (torch.randn(2, 4, 7, 6),)


class SpectralConvolution(nn.Module):
    """Low modes of a real two-dimensional transform mixed by complex weights (a Fourier neural operator's layer)."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.w1 = nn.Parameter(torch.rand(width, width, modes, modes, dtype=torch.cfloat) / width)
        self.w2 = nn.Parameter(torch.rand(width, width, modes, modes, dtype=torch.cfloat) / width)
        self.local = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        m, spectrum = self.modes, torch.fft.rfft2(x)
        out = torch.zeros_like(spectrum)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.w1)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :m], self.w2)
        return F.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + self.local(x))


@model("torch")
def spectral_convolution_2d() -> tuple[Any, ...]:
    return seeded(lambda: SpectralConvolution(4, 3)).eval(), (torch.randn(2, 4, 12, 10),)


class CapsuleRouting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.primary = nn.Conv2d(4, 16, 3, stride=2)
        self.votes = nn.Parameter(0.1 * torch.randn(1, 36, 5, 6, 4))

    def forward(self, x: Tensor) -> Tensor:
        def squash(v: Tensor) -> Tensor:
            square = (v**2).sum(-1, keepdim=True)
            return square / (1 + square) * v / torch.sqrt(square + 1e-8)

        u = squash(self.primary(x).view(x.shape[0], -1, 4))
        votes = torch.matmul(self.votes, u[:, :, None, :, None]).squeeze(-1)
        logits = torch.zeros(votes.shape[:3])
        for step in range(3):
            coupling = F.softmax(logits, dim=2)
            v = squash((coupling.unsqueeze(-1) * votes).sum(1, keepdim=True))
            if step < 2:
                logits = logits + (votes * v).sum(-1)
        return torch.linalg.vector_norm(v.squeeze(1), dim=-1)


@model("torch")
def capsule_routing_by_agreement() -> tuple[Any, ...]:
    return seeded(CapsuleRouting).eval(), (torch.randn(2, 4, 8, 8),)
