"""Models in PyTorch as people write them by hand."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from bench.zoo import model


def seeded(build: Any) -> Any:
    torch.manual_seed(0)
    return build()


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.skip = nn.Sequential()
        if stride != 1 or inner != outer:
            self.skip = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.first(x)))
        return F.relu(self.norm2(self.second(y)) + self.skip(x))


def small_resnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1),
        nn.MaxPool2d(2),
        Residual(8, 8),
        Residual(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


@model("torch")
def resnet() -> tuple[Any, ...]:
    return seeded(small_resnet).eval(), (torch.randn(2, 3, 16, 16),)


@model("torch")
def resnet_in_training() -> tuple[Any, ...]:
    return seeded(small_resnet).train(), (torch.randn(2, 3, 16, 16),)


@model("torch")
def resnet_channels_last() -> tuple[Any, ...]:
    net = seeded(small_resnet).eval().to(memory_format=torch.channels_last)
    return net, (torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last),)


@model("torch")
def resnet_bfloat16() -> tuple[Any, ...]:
    return seeded(small_resnet).eval().bfloat16(), (torch.randn(2, 3, 16, 16).bfloat16(),)


@model("torch")
def resnet_float16() -> tuple[Any, ...]:
    return seeded(small_resnet).eval().half(), (torch.randn(2, 3, 16, 16).half(),)


@model("torch")
def resnet_autocast() -> tuple[Any, ...]:
    net = seeded(small_resnet).eval()

    def run(x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return net(x)

    return run, (torch.randn(2, 3, 16, 16),)


@model("torch")
def resnet_float64() -> tuple[Any, ...]:
    return seeded(small_resnet).eval().double(), (torch.randn(2, 3, 16, 16).double(),)


class UNet(nn.Module):
    def __init__(self, bilinear: bool = True) -> None:
        super().__init__()
        self.down1, self.down2 = self.block(1, 8), self.block(8, 16)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True) if bilinear else None
        self.transposed = nn.ConvTranspose2d(16, 16, 2, 2)
        self.join = self.block(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    @staticmethod
    def block(inner: int, outer: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(inner, outer, 3, padding="same"), nn.GroupNorm(2, outer), nn.SiLU())

    def forward(self, x: Tensor) -> Tensor:
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        b = self.up(b) if self.up else self.transposed(b)
        return torch.sigmoid(self.out(self.join(torch.cat([a, b], 1))))


@model("torch")
def unet_bilinear() -> tuple[Any, ...]:
    return seeded(UNet).eval(), (torch.randn(1, 1, 8, 8),)


@model("torch")
def unet_transposed() -> tuple[Any, ...]:
    return seeded(lambda: UNet(False)).eval(), (torch.randn(1, 1, 8, 8),)


@model("torch")
def vae() -> tuple[Any, ...]:
    encode, decode = seeded(lambda: (nn.Linear(12, 8), nn.Linear(4, 12)))

    def run(x: Tensor, noise: Tensor) -> tuple[Tensor, ...]:
        mean, log_variance = encode(x).chunk(2, -1)
        z = mean + noise * torch.exp(0.5 * log_variance)
        out = torch.sigmoid(decode(z))
        loss = F.binary_cross_entropy(out, torch.sigmoid(x), reduction="sum")
        return out, loss - 0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())

    return run, (torch.randn(3, 12), torch.randn(3, 4))


@model("torch")
def dcgan_generator() -> tuple[Any, ...]:
    def build() -> nn.Module:
        return nn.Sequential(
            nn.ConvTranspose2d(10, 16, 4, 1, 0, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(True),
            nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(True),
            nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    return seeded(build).eval(), (torch.randn(2, 10, 1, 1),)


@model("torch")
def dcgan_discriminator() -> tuple[Any, ...]:
    def build() -> nn.Module:
        return nn.Sequential(
            nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 8, 4, 2, 1)),
            nn.LeakyReLU(0.2),
            nn.Dropout2d(0.3),
            nn.Conv2d(8, 1, 4, 2, 1),
            nn.Sigmoid(),
        )

    return seeded(build).eval(), (torch.randn(2, 3, 8, 8),)


@model("torch")
def mobilenet_block() -> tuple[Any, ...]:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.expand, self.depth = nn.Conv2d(4, 16, 1), nn.Conv2d(16, 16, 5, 1, 2, groups=16)
            self.squeeze, self.excite = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
            self.project, self.norm = nn.Conv2d(16, 4, 1), nn.BatchNorm2d(4)

        def forward(self, x: Tensor) -> Tensor:
            y = F.hardswish(self.depth(F.relu6(self.expand(x))))
            gate = F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
            return x + self.norm(self.project(y * gate))

    return seeded(Block).eval(), (torch.randn(1, 4, 8, 8),)


@model("torch")
def diffusion_unet() -> tuple[Any, ...]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 8))
            self.enter, self.leave = nn.Conv2d(1, 8, 3, 1, 1), nn.Conv2d(8, 1, 3, 1, 1)
            self.norm = nn.GroupNorm(4, 8)
            self.down, self.up = nn.Conv2d(8, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1)
            self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            half = torch.exp(-math.log(10000) * torch.arange(8, dtype=torch.float32) / 8)
            angle = t.float()[:, None] * half[None]
            code = self.time(torch.cat([angle.sin(), angle.cos()], -1))
            h = self.enter(x) + code[:, :, None, None]
            low = self.down(F.silu(self.norm(h)))
            b, c, height, width = low.shape
            flat = low.flatten(2).transpose(1, 2)
            flat = flat + self.attend(flat, flat, flat, need_weights=False)[0]
            low = flat.transpose(1, 2).reshape(b, c, height, width)
            return self.leave(h + self.up(F.interpolate(low, scale_factor=2, mode="nearest")))

    return seeded(Net).eval(), (torch.randn(2, 1, 8, 8), torch.tensor([3, 700]))


@model("torch")
def ddpm_sampling() -> tuple[Any, ...]:
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 16), nn.Mish(), nn.Linear(16, 2)))
    betas = torch.linspace(1e-4, 0.02, 10)
    kept = torch.cumprod(1 - betas, 0)

    def run(x: Tensor, noise: Tensor) -> Tensor:
        for k in reversed(range(10)):
            t = torch.full((x.shape[0], 1), k / 10)
            guess = net(torch.cat([x, t], 1))
            x = (x - betas[k] / torch.sqrt(1 - kept[k]) * guess) / torch.sqrt(1 - betas[k])
            if k:
                x = x + torch.sqrt(betas[k]) * noise[k]
        return x

    return run, (torch.randn(4, 2), torch.randn(10, 4, 2))


@model("torch")
def wavenet() -> tuple[Any, ...]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enter = nn.Conv1d(1, 8, 1)
            self.filters = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=2**k) for k in range(3))
            self.skips = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(3))
            self.leave = nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 4, 1))

        def forward(self, x: Tensor) -> Tensor:
            h, total = self.enter(x), 0
            for k, (gate, skip) in enumerate(zip(self.filters, self.skips, strict=True)):
                a, b = gate(F.pad(h, (2**k, 0))).chunk(2, 1)
                y = torch.tanh(a) * torch.sigmoid(b)
                total, h = total + skip(y), h + y
            return F.log_softmax(self.leave(F.relu(total)), 1)

    return seeded(Net).eval(), (torch.randn(1, 1, 16),)


@model("torch")
def normalizing_flow() -> tuple[Any, ...]:
    """Affine couplings, invertible mixing by LU, and the log-density."""
    nets = seeded(lambda: nn.ModuleList(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4)) for _ in range(3)))
    mixes = [torch.linalg.qr(torch.randn(4, 4))[0] for _ in range(3)]

    def run(x: Tensor) -> Tensor:
        total = torch.zeros(x.shape[0])
        for net, mix in zip(nets, mixes, strict=True):
            x = x @ mix
            total = total + torch.linalg.slogdet(mix)[1]
            a, b = x.chunk(2, -1)
            scale, shift = net(a).chunk(2, -1)
            x = torch.cat([a, b * torch.exp(torch.tanh(scale)) + shift], -1)
            total = total + torch.tanh(scale).sum(-1)
        base = torch.distributions.Normal(0.0, 1.0)
        return base.log_prob(x).sum(-1) + total

    return run, (torch.randn(5, 4),)


@model("torch")
def message_passing() -> tuple[Any, ...]:
    layer, update = seeded(lambda: (nn.Linear(6, 8), nn.GRUCell(8, 3)))

    def run(x: Tensor, edges: Tensor) -> Tensor:
        for _ in range(2):
            message = F.relu(layer(torch.cat([x[edges[0]], x[edges[1]]], -1)))
            gathered = torch.zeros(x.shape[0], 8).index_add(0, edges[1], message)
            degree = torch.zeros(x.shape[0]).scatter_add_(0, edges[1], torch.ones(edges.shape[1])).clamp(min=1)
            x = update(gathered / degree[:, None], x)
        return x.scatter_reduce(0, edges[1][:, None].expand(-1, 3), x[edges[0]], "amax")

    return run, (torch.randn(5, 3), torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]]))


@model("torch")
def pinn() -> tuple[Any, ...]:
    """The residual of Burgers' equation, with second derivatives by autograd."""
    net = seeded(lambda: nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)))

    def run(points: Tensor) -> Tensor:
        t, x = (points[:, k : k + 1].detach().requires_grad_() for k in (0, 1))
        u = net(torch.cat([t, x], 1))
        ut, ux = torch.autograd.grad(u.sum(), (t, x), create_graph=True)
        (uxx,) = torch.autograd.grad(ux.sum(), x, create_graph=True)
        return ut + u * ux - 0.01 * uxx

    return run, (torch.rand(6, 2),)


@model("torch")
def pinn_loss_gradient() -> tuple[Any, ...]:
    net = seeded(lambda: nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)))
    parameters = dict(net.named_parameters())

    def residual(p: dict[str, Tensor], point: Tensor) -> Tensor:
        def u(z: Tensor) -> Tensor:
            return torch.func.functional_call(net, p, (z,)).squeeze()

        hessian = torch.func.hessian(u)(point)
        return torch.func.grad(u)(point)[0] - hessian[1, 1]

    def loss(p: dict[str, Tensor], points: Tensor) -> Tensor:
        return torch.vmap(residual, in_dims=(None, 0))(p, points).pow(2).mean()

    return torch.func.grad_and_value(loss), ({k: v.detach() for k, v in parameters.items()}, torch.rand(6, 2))


@model("torch")
def neural_ode_step() -> tuple[Any, ...]:
    net = seeded(lambda: nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 3)))

    def run(x: Tensor, h: Tensor) -> Tensor:
        for _ in range(3):
            k1 = net(x)
            k2 = net(x + h / 2 * k1)
            k3 = net(x + h / 2 * k2)
            k4 = net(x + h * k3)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x

    return run, (torch.randn(2, 3), torch.tensor(0.1))


@model("torch")
def siren() -> tuple[Any, ...]:
    layers = seeded(lambda: nn.ModuleList([nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 1)]))

    def run(x: Tensor) -> tuple[Tensor, Tensor]:
        def field(x: Tensor) -> Tensor:
            for layer in layers[:-1]:
                x = torch.sin(30 * layer(x))
            return layers[-1](x)

        return field(x), torch.func.vmap(torch.func.jacrev(lambda z: field(z)))(x)

    return run, (torch.rand(4, 2) * 2 - 1,)


@model("torch")
def kan() -> tuple[Any, ...]:
    """A Kolmogorov-Arnold layer: B-splines of degree 3 by de Boor's recurrence."""
    grid = torch.linspace(-2, 2, 12)
    weights = seeded(lambda: torch.randn(4, 3, 8))

    def run(x: Tensor) -> Tensor:
        z = x.unsqueeze(-1)
        bases = ((z >= grid[:-1]) & (z < grid[1:])).to(x.dtype)
        for k in range(1, 4):
            left = (z - grid[: -(k + 1)]) / (grid[k:-1] - grid[: -(k + 1)]) * bases[..., :-1]
            right = (grid[k + 1 :] - z) / (grid[k + 1 :] - grid[1:-k]) * bases[..., 1:]
            bases = left + right
        return torch.einsum("bik,oik->bo", bases, weights) + F.silu(x).sum(-1, keepdim=True)

    return run, (torch.randn(5, 3),)


@model("torch")
def mlp_mixer() -> tuple[Any, ...]:
    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 16, 4, 4)
            self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
            self.tokens = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
            self.channels = nn.Sequential(nn.Linear(16, 8), nn.GELU("tanh"), nn.Linear(8, 16))

        def forward(self, x: Tensor) -> Tensor:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return (x + self.channels(self.norm2(x))).mean(1)

    return seeded(Mixer).eval(), (torch.randn(2, 3, 8, 8),)


@model("torch")
def seq2seq_attention() -> tuple[Any, ...]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(20, 8, padding_idx=0)
            self.encoder = nn.LSTM(8, 8, 2, batch_first=True, bidirectional=True, dropout=0.1)
            self.decoder, self.out = nn.LSTMCell(8 + 16, 8), nn.Linear(8, 20)
            self.score = nn.Bilinear(8, 16, 1)

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            memory, (h, c) = self.encoder(self.words(source))
            state, found = (h[-1], c[-1]), []
            for k in range(target.shape[1]):
                query = state[0][:, None].expand(-1, memory.shape[1], -1).contiguous()
                weight = torch.softmax(self.score(query, memory).squeeze(-1), -1)
                context = torch.einsum("bt,btd->bd", weight, memory)
                state = self.decoder(torch.cat([self.words(target[:, k]), context], -1), state)
                found.append(self.out(state[0]))
            return torch.stack(found, 1)

    return seeded(Net).eval(), (torch.randint(0, 20, (2, 5)), torch.randint(0, 20, (2, 3)))


@model("torch")
def gru_layers() -> tuple[Any, ...]:
    return seeded(lambda: nn.GRU(3, 4, 2, bidirectional=True)).eval(), (torch.randn(5, 2, 3), torch.randn(4, 2, 4))


@model("torch")
def rnn_layers() -> tuple[Any, ...]:
    return seeded(lambda: nn.RNN(3, 4, 2, nonlinearity="relu", batch_first=True)).eval(), (torch.randn(2, 5, 3),)


@model("torch")
def lstm_projected() -> tuple[Any, ...]:
    return seeded(lambda: nn.LSTM(3, 6, proj_size=4)).eval(), (torch.randn(5, 2, 3),)


@model("torch")
def transformer_encoder() -> tuple[Any, ...]:
    layer = seeded(lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu"))
    net = nn.TransformerEncoder(layer, 2).eval()
    mask = torch.tensor([[False, False, False, True], [False] * 4])
    return net, (torch.randn(2, 4, 16),), {"src_key_padding_mask": mask}


@model("torch")
def transformer() -> tuple[Any, ...]:
    net = seeded(lambda: nn.Transformer(16, 2, 1, 1, 32, batch_first=True)).eval()

    def run(source: Tensor, target: Tensor) -> Tensor:
        return net(source, target, tgt_mask=net.generate_square_subsequent_mask(3), tgt_is_causal=True)

    return run, (torch.randn(2, 4, 16), torch.randn(2, 3, 16))


@model("torch")
def grouped_query_attention() -> tuple[Any, ...]:
    def run(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        masked = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return masked, F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True, scale=0.3)

    k, v = torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    return run, (torch.randn(2, 4, 5, 8), k, v, torch.rand(5, 5) > 0.3)


@model("torch")
def spatial_transformer() -> tuple[Any, ...]:
    locate = seeded(lambda: nn.Linear(16, 6))

    def run(x: Tensor) -> Tensor:
        theta = locate(x.flatten(1)).view(-1, 2, 3)
        return F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False), align_corners=False)

    return run, (torch.randn(2, 1, 4, 4),)


@model("torch")
def capsules() -> tuple[Any, ...]:
    weights = seeded(lambda: torch.randn(6, 3, 4, 8))

    def squash(s: Tensor) -> Tensor:
        norm = s.norm(dim=-1, keepdim=True)
        return norm**2 / (1 + norm**2) * s / (norm + 1e-8)

    def run(u: Tensor) -> Tensor:
        guesses = torch.einsum("ijdk,bik->bijd", weights, u)
        logits = torch.zeros(guesses.shape[:3])
        for _ in range(3):
            v = squash((logits.softmax(2).unsqueeze(-1) * guesses).sum(1))
            logits = logits + (guesses * v.unsqueeze(1)).sum(-1)
        return v

    return run, (torch.randn(2, 6, 8),)


@model("torch")
def mixture_of_experts() -> tuple[Any, ...]:
    gate, experts = seeded(lambda: (nn.Linear(8, 4), nn.ModuleList(nn.Linear(8, 8) for _ in range(4))))

    def run(x: Tensor) -> Tensor:
        weight, chosen = torch.topk(gate(x).softmax(-1), 2)
        weight = weight / weight.sum(-1, keepdim=True)
        outputs = torch.stack([expert(x) for expert in experts], 1)
        return (outputs.gather(1, chosen[..., None].expand(-1, -1, 8)) * weight[..., None]).sum(1)

    return run, (torch.randn(5, 8),)


@model("torch")
def vector_quantization() -> tuple[Any, ...]:
    codes = seeded(lambda: nn.Embedding(8, 4))

    def run(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        index = torch.cdist(z, codes.weight).argmin(-1)
        found = codes(index)
        loss = F.mse_loss(found, z) + 0.25 * F.mse_loss(z, found)
        return z + (found - z).detach(), index, loss

    return run, (torch.randn(6, 4),)


@model("torch")
def state_space() -> tuple[Any, ...]:
    """A diagonal state-space layer, its convolution by the fast Fourier transform."""
    a, b, c = seeded(lambda: (-torch.rand(4, 8), torch.randn(4, 8), torch.randn(4, 8)))

    def run(u: Tensor) -> Tensor:
        length = u.shape[-1]
        steps = torch.arange(length)
        kernel = (c[..., None] * b[..., None] * torch.exp(a[..., None] * steps)).sum(1)
        spectrum = torch.fft.rfft(u, 2 * length) * torch.fft.rfft(kernel, 2 * length)
        return F.gelu(torch.fft.irfft(spectrum, 2 * length)[..., :length])

    return run, (torch.randn(2, 4, 16),)


@model("torch")
def fourier_operator() -> tuple[Any, ...]:
    weight = seeded(lambda: torch.randn(4, 4, 3, 3, dtype=torch.complex64))

    def run(x: Tensor) -> Tensor:
        spectrum = torch.fft.rfft2(x, norm="ortho")
        out = torch.zeros_like(spectrum)
        out[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :3, :3], weight)
        return torch.fft.irfft2(out, s=x.shape[-2:], norm="ortho")

    return run, (torch.randn(1, 4, 8, 8),)


@model("torch")
def gaussian_process() -> tuple[Any, ...]:
    def run(x: Tensor, y: Tensor, new: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        def kernel(a: Tensor, b: Tensor) -> Tensor:
            return torch.exp(-0.5 * torch.cdist(a, b).pow(2) / scale**2)

        factor = torch.linalg.cholesky(kernel(x, x) + 0.1 * torch.eye(len(x)))
        alpha = torch.cholesky_solve(y[:, None], factor)
        cross = kernel(new, x)
        half = torch.linalg.solve_triangular(factor, cross.mT, upper=False)
        evidence = -0.5 * (y @ alpha).squeeze() - factor.diagonal().log().sum() - 0.5 * len(x) * math.log(2 * math.pi)
        return cross @ alpha, 1 - half.pow(2).sum(0), evidence

    return run, (torch.randn(6, 2), torch.randn(6), torch.randn(3, 2), torch.tensor(1.3))


@model("torch")
def multivariate_normal() -> tuple[Any, ...]:
    def run(x: Tensor, mean: Tensor, cov: Tensor) -> tuple[Tensor, Tensor]:
        d = torch.distributions.MultivariateNormal(mean, cov, validate_args=False)
        return d.log_prob(x), d.entropy()

    root = torch.randn(3, 3)
    return run, (torch.randn(5, 3), torch.randn(3), root @ root.mT + torch.eye(3))


@model("torch")
def hidden_markov() -> tuple[Any, ...]:
    def run(logits: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
        steps = moves.log_softmax(-1)
        alpha, best, places = logits[0], logits[0], []
        for row in logits[1:]:
            alpha = torch.logsumexp(alpha[:, None] + steps, 0) + row
            best, place = (best[:, None] + steps).max(0)
            best = best + row
            places.append(place)
        return alpha.logsumexp(0), torch.stack(places)

    return run, (torch.randn(6, 4).log_softmax(-1), torch.randn(4, 4))


@model("torch")
def dueling_dqn_loss() -> tuple[Any, ...]:
    body, value, advantage = seeded(lambda: (nn.Linear(4, 16), nn.Linear(16, 1), nn.Linear(16, 3)))

    def q(s: Tensor) -> Tensor:
        h = F.relu(body(s))
        a = advantage(h)
        return value(h) + a - a.mean(1, keepdim=True)

    def run(s: Tensor, action: Tensor, reward: Tensor, following: Tensor, done: Tensor) -> Tensor:
        with torch.no_grad():
            target = reward + 0.99 * q(following).max(1).values * (1 - done.float())
        return F.smooth_l1_loss(q(s).gather(1, action[:, None]).squeeze(1), target)

    done = torch.tensor([False, True, False])
    return run, (torch.randn(3, 4), torch.tensor([0, 2, 1]), torch.randn(3), torch.randn(3, 4), done)


@model("torch")
def ppo_loss() -> tuple[Any, ...]:
    def run(logits: Tensor, old: Tensor, action: Tensor, rewards: Tensor, values: Tensor) -> Tensor:
        policy = torch.distributions.Categorical(logits=logits)
        advantage, found = torch.zeros(()), []
        for k in reversed(range(len(rewards))):
            delta = rewards[k] + 0.99 * (values[k + 1] if k + 1 < len(values) else 0.0) - values[k]
            advantage = delta + 0.95 * advantage
            found.insert(0, advantage)
        gains = torch.stack(found)
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        ratio = torch.exp(policy.log_prob(action) - old)
        clipped = ratio.clamp(0.8, 1.2)
        return -torch.min(ratio * gains, clipped * gains).mean() - 0.01 * policy.entropy().mean()

    return run, (torch.randn(5, 3), torch.randn(5), torch.tensor([0, 2, 1, 1, 0]), torch.randn(5), torch.randn(5))


@model("torch")
def contrastive_loss() -> tuple[Any, ...]:
    def run(a: Tensor, b: Tensor, t: Tensor) -> Tensor:
        scores = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T * t.exp()
        labels = torch.arange(len(a))
        return (F.cross_entropy(scores, labels) + F.cross_entropy(scores.T, labels, label_smoothing=0.1)) / 2

    return run, (torch.randn(4, 8), torch.randn(4, 8), torch.tensor(1.0))


@model("torch")
def radiance_field() -> tuple[Any, ...]:
    net = seeded(lambda: nn.Sequential(nn.Linear(15, 16), nn.ReLU(), nn.Linear(16, 4)))

    def run(origin: Tensor, direction: Tensor) -> Tensor:
        depth = torch.linspace(2, 6, 8)
        points = origin[:, None] + direction[:, None] * depth[:, None]
        code = torch.cat([points, *(f(2**k * points) for k in range(2) for f in (torch.sin, torch.cos))], -1)
        out = net(code)
        step = torch.cat([depth.diff(), torch.tensor([1e10])])
        alpha = 1 - torch.exp(-F.relu(out[..., 3]) * step)
        through = torch.cumprod(torch.cat([torch.ones(len(alpha), 1), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        return ((alpha * through)[..., None] * torch.sigmoid(out[..., :3])).sum(-2)

    return run, (torch.randn(3, 3), torch.randn(3, 3))


@model("torch")
def tied_language_model() -> tuple[Any, ...]:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(20, 16), nn.Embedding(8, 16)
            self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
            self.head = nn.Linear(16, 20, bias=False)
            self.head.weight = self.words.weight
            self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))

        def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
            b, t = ids.shape
            x = self.words(ids) + self.places(torch.arange(t))
            q, k, v = self.qkv(self.norm(x)).split(16, 2)
            q, k, v = (z.view(b, t, 2, 8).transpose(1, 2) for z in (q, k, v))
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(8)
            scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")).softmax(-1)
            x = x + self.out((scores @ v).transpose(1, 2).contiguous().view(b, t, 16))
            logits = self.head(x)
            loss = None if targets is None else F.cross_entropy(logits.view(-1, 20), targets.view(-1), ignore_index=-1)
            return logits, loss

    return seeded(Net).eval(), (torch.randint(0, 20, (2, 6)),), {"targets": torch.randint(0, 20, (2, 6))}


@model("torch")
def rotary_cache_step() -> tuple[Any, ...]:
    """One token of a rotary attention layer, written into a cache in place."""
    weights = seeded(lambda: [torch.randn(16, 16) / 4 for _ in range(4)])

    def rotated(x: Tensor, place: Tensor) -> Tensor:
        angle = place * 10000.0 ** (-torch.arange(0, 8, 2) / 8)
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)

    def step(x: Tensor, keys: Tensor, values: Tensor, place: Tensor) -> Tensor:
        q, k, v = ((x @ w).view(1, 2, 8) for w in weights[:3])
        keys[place] = rotated(k, place)[0]
        values.index_copy_(0, place[None], v)
        scores = torch.einsum("bhd,thd->bht", rotated(q, place), keys) / 8**0.5
        scores = scores.masked_fill(torch.arange(keys.shape[0]) > place, -torch.inf).softmax(-1)
        return torch.einsum("bht,thd->bhd", scores, values).reshape(1, 16) @ weights[3]

    return step, (torch.randn(1, 16), torch.zeros(6, 2, 8), torch.zeros(6, 2, 8), torch.tensor(2))


@model("torch")
def bag_of_words() -> tuple[Any, ...]:
    net = seeded(lambda: nn.EmbeddingBag(20, 4, mode="mean"))
    return net, (torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4]))


@model("torch")
def conditional_blocks() -> tuple[Any, ...]:
    a, b = seeded(lambda: (nn.Linear(4, 4), nn.Linear(4, 4)))

    def run(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: a(x).relu(), lambda x: b(x).tanh(), (x,))

    return run, (torch.randn(2, 4),)


@model("torch")
def newton_loop() -> tuple[Any, ...]:
    from torch._higher_order_ops import while_loop

    def run(x: Tensor) -> Tensor:
        def more(y: Tensor, count: Tensor) -> Tensor:
            return ((y * y - x).abs().max() > 1e-5) & (count < 50)

        return while_loop(more, lambda y, count: (0.5 * (y + x / y), count + 1), (x.clone(), torch.tensor(0)))[0]

    return run, (torch.rand(4) + 1,)


@model("torch")
def linear_recurrence() -> tuple[Any, ...]:
    from torch._higher_order_ops import associative_scan, scan

    def run(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        def combine(x: Any, y: Any) -> Any:
            return x[0] * y[0], y[0] * x[1] + y[1]

        def step(h: Tensor, x: Any) -> tuple[Tensor, Tensor]:
            h = x[0] * h + x[1]
            return h, h.clone()

        both = associative_scan(combine, (a, b), 0, combine_mode="generic")
        return both[1], scan(step, torch.zeros(3), (a, b))[1]

    return run, (torch.rand(8, 3), torch.randn(8, 3))


@model("torch")
def sinkhorn() -> tuple[Any, ...]:
    def run(cost: Tensor) -> Tensor:
        u, v = torch.zeros(4), torch.zeros(5)
        for _ in range(20):
            u = -torch.logsumexp(-cost / 0.1 + v, 1)
            v = -torch.logsumexp(-cost / 0.1 + u[:, None], 0)
        return torch.exp(-cost / 0.1 + u[:, None] + v).sum(1)

    return run, (torch.rand(4, 5),)


@model("torch")
def lattice_gas() -> tuple[Any, ...]:
    """A step of the Gray-Scott reaction, with periodic neighbours."""

    def run(u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        def laplace(x: Tensor) -> Tensor:
            return sum(torch.roll(x, s, d) for s in (1, -1) for d in (0, 1)) - 4 * x

        for _ in range(4):
            uvv = u * v * v
            u, v = u + 0.16 * laplace(u) - uvv + 0.035 * (1 - u), v + 0.08 * laplace(v) + uvv - 0.1 * v
        return u, v

    return run, (torch.rand(6, 6), torch.rand(6, 6))
