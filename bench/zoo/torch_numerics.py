"""Losses, filters, samplers and other numerical programs in PyTorch, many of them gradients."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from bench.zoo import model
from bench.zoo.torch_written import seeded


class Coupling(nn.Module):
    """Affine coupling layers with masks, the density of data under the flow."""

    def __init__(self, dim: int = 4, layers: int = 3) -> None:
        super().__init__()
        nets = [nn.Sequential(nn.Linear(dim, 16), nn.LeakyReLU(0.1), nn.Linear(16, 2 * dim)) for _ in range(layers)]
        self.nets = nn.ModuleList(nets)
        self.register_buffer("masks", torch.stack([(torch.arange(dim) + k) % 2 for k in range(layers)]).float())

    def forward(self, x: Tensor) -> Tensor:
        total = x.new_zeros(x.shape[0])
        for net, mask in zip(self.nets, self.masks, strict=True):
            scale, shift = net(x * mask).chunk(2, dim=1)
            scale = torch.tanh(scale) * (1 - mask)
            x = x * mask + (1 - mask) * (x * torch.exp(scale) + shift)
            total = total + scale.sum(dim=1)
        return torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(1) + total


@model("torch")
def coupling_flow_density() -> tuple[Any, ...]:
    return seeded(Coupling).eval(), (torch.randn(6, 4),)


@model("torch")
def coupling_flow_gradient() -> tuple[Any, ...]:
    net = seeded(Coupling)
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return -torch.func.functional_call(net, parameters, (x,)).mean()

    return torch.func.grad(loss), (parameters, torch.randn(6, 4))


class RecurrentTranslator(nn.Module):
    """A GRU encoder over packed steps, and a decoder cell with additive attention, greedy."""

    def __init__(self, words: int = 11, dim: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, dim, padding_idx=0)
        self.encoder = nn.GRU(dim, dim, bidirectional=True, batch_first=True)
        self.bridge = nn.Linear(2 * dim, dim)
        self.cell = nn.GRUCell(3 * dim, dim)
        self.query, self.memory, self.energy = nn.Linear(dim, dim), nn.Linear(2 * dim, dim), nn.Linear(dim, 1)
        self.out = nn.Linear(dim, words)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        memory, last = self.encoder(self.embed(source))
        hidden = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1)))
        token = torch.ones(source.shape[0], dtype=torch.long)
        padding, tokens, logits = source == 0, [], []
        for _ in range(4):
            energy = self.energy(torch.tanh(self.query(hidden)[:, None] + self.memory(memory))).squeeze(-1)
            weights = energy.masked_fill(padding, float("-inf")).softmax(-1)
            context = torch.bmm(weights[:, None], memory).squeeze(1)
            hidden = self.cell(torch.cat([self.embed(token), context], -1), hidden)
            logits.append(self.out(hidden))
            token = logits[-1].argmax(-1)
            tokens.append(token)
        return torch.stack(tokens, 1), torch.stack(logits, 1).log_softmax(-1)


@model("torch")
def recurrent_translator_greedy() -> tuple[Any, ...]:
    return seeded(RecurrentTranslator).eval(), (torch.tensor([[3, 4, 5, 0, 0], [6, 2, 9, 10, 1]]),)


def crf_likelihood(emissions: Tensor, transitions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
    """The negative log likelihood of a linear chain by the forward algorithm."""
    steps = torch.arange(tags.shape[0])
    score = emissions[0].gather(1, tags[0][:, None]).squeeze(1)
    alpha = emissions[0]
    for t in steps[1:].tolist():
        step = transitions[tags[t - 1], tags[t]] + emissions[t].gather(1, tags[t][:, None]).squeeze(1)
        score = score + torch.where(mask[t], step, torch.zeros_like(step))
        following = torch.logsumexp(alpha[:, :, None] + transitions[None] + emissions[t][:, None], dim=1)
        alpha = torch.where(mask[t][:, None], following, alpha)
    return (torch.logsumexp(alpha, dim=1) - score).mean()


def crf_data() -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    mask = torch.tensor([[True] * 3, [True] * 3, [True, True, False], [True, False, False]])
    return torch.randn(4, 3, 5), torch.randn(5, 5), torch.randint(0, 5, (4, 3)), mask


@model("torch")
def crf_forward_algorithm() -> tuple[Any, ...]:
    return crf_likelihood, crf_data()


@model("torch")
def crf_marginals() -> tuple[Any, ...]:
    return torch.func.grad(crf_likelihood, argnums=(0, 1)), crf_data()


@model("torch")
def gaussian_process_posterior() -> tuple[Any, ...]:
    torch.manual_seed(0)

    def kernel(a: Tensor, b: Tensor, scale: Tensor) -> Tensor:
        return torch.exp(-0.5 * torch.cdist(a / scale, b / scale).pow(2))

    def posterior(x: Tensor, y: Tensor, new: Tensor, log_scale: Tensor) -> tuple[Tensor, ...]:
        scale = F.softplus(log_scale)
        lower = torch.linalg.cholesky(kernel(x, x, scale) + 1e-2 * torch.eye(x.shape[0]))
        alpha = torch.cholesky_solve(y[:, None], lower)
        cross = kernel(x, new, scale)
        v = torch.linalg.solve_triangular(lower, cross, upper=False)
        evidence = -0.5 * (y @ alpha).squeeze() - lower.diagonal().log().sum() - 0.5 * len(y) * math.log(2 * math.pi)
        return (cross.t() @ alpha).squeeze(1), kernel(new, new, scale) - v.t() @ v, evidence

    return posterior, (torch.randn(9, 2), torch.randn(9), torch.randn(4, 2), torch.tensor([0.3, -0.2]))


@model("torch")
def kalman_smoother() -> tuple[Any, ...]:
    torch.manual_seed(0)

    def smooth(observations: Tensor, f: Tensor, h: Tensor, q: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
        mean, cov = torch.zeros(f.shape[0], dtype=f.dtype), torch.eye(f.shape[0], dtype=f.dtype)
        filtered, likelihood = [], torch.zeros((), dtype=f.dtype)
        for z in observations:
            mean, cov = f @ mean, f @ cov @ f.mT + q
            s = h @ cov @ h.mT + r
            gain = torch.linalg.solve(s, h @ cov).mT
            residual = z - h @ mean
            likelihood = likelihood - 0.5 * (torch.logdet(s) + residual @ torch.linalg.solve(s, residual))
            mean, cov = mean + gain @ residual, cov - gain @ s @ gain.mT
            filtered.append((mean, cov))
        smoothed = [filtered[-1][0]]
        for mean, cov in reversed(filtered[:-1]):
            back = cov @ f.mT @ torch.linalg.inv(f @ cov @ f.mT + q)
            smoothed.append(mean + back @ (smoothed[-1] - f @ mean))
        return torch.stack(smoothed[::-1]), likelihood

    f = torch.tensor([[1.0, 0.1], [0.0, 1.0]], dtype=torch.float64)
    h, q = torch.tensor([[1.0, 0.0]], dtype=torch.float64), 0.01 * torch.eye(2, dtype=torch.float64)
    return smooth, (torch.randn(6, 1, dtype=torch.float64), f, h, q, 0.1 * torch.eye(1, dtype=torch.float64))


class RadianceField(nn.Module):
    """Frequencies of positions, a perceptron for density and colour, rays composed from front to back."""

    def __init__(self, bands: int = 4) -> None:
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(bands))
        self.trunk = nn.Sequential(nn.Linear(3 + 6 * bands, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU())
        self.density, self.colour = nn.Linear(24, 1), nn.Linear(24 + 3, 3)

    def encode(self, x: Tensor) -> Tensor:
        scaled = (x[..., None] * self.bands).flatten(-2)
        return torch.cat([x, scaled.sin(), scaled.cos()], dim=-1)

    def forward(self, origins: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
        depths = torch.linspace(1.0, 3.0, 9)
        points = origins[:, None] + depths[None, :, None] * directions[:, None]
        h = self.trunk(self.encode(points))
        sigma = F.relu(self.density(h)).squeeze(-1)
        unit = F.normalize(directions, dim=-1)[:, None].expand_as(points)
        rgb = torch.sigmoid(self.colour(torch.cat([h, unit], -1)))
        gaps = torch.cat([depths[1:] - depths[:-1], torch.tensor([1e10])]) * directions.norm(dim=-1, keepdim=True)
        alpha = 1.0 - torch.exp(-sigma * gaps)
        through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        weights = alpha * through
        return (weights[..., None] * rgb).sum(-2), (weights * depths).sum(-1)


@model("torch")
def volume_rendering() -> tuple[Any, ...]:
    return seeded(RadianceField).eval(), (torch.randn(5, 3), torch.randn(5, 3))


class GraphLayers(nn.Module):
    """Normalised sums, maxima and means over edges, and attention by a softmax within each target."""

    def __init__(self, dim: int = 6) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(2 * dim, dim), nn.Linear(4 * dim, dim)
        self.score = nn.Linear(2 * dim, 1)

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        n = x.shape[0]
        pair = torch.cat([x[source], x[target]], -1)
        message = F.elu(self.message(pair))
        index = target[:, None].expand_as(message)
        degree = torch.zeros(n).index_add(0, target, torch.ones(target.shape[0])).clamp(min=1)
        norm = degree.rsqrt()[source] * degree.rsqrt()[target]
        total = torch.zeros_like(x).index_add(0, target, message * norm[:, None])
        top = torch.zeros_like(x).scatter_reduce(0, index, message, "amax", include_self=False)
        mean = torch.zeros_like(x).scatter_reduce(0, index, message, "mean", include_self=False)
        score = F.leaky_relu(self.score(pair).squeeze(-1), 0.2)
        peak = torch.full((n,), float("-inf")).scatter_reduce(0, target, score, "amax")
        weight = torch.exp(score - peak[target])
        weight = weight / (torch.zeros(n).scatter_add(0, target, weight)[target] + 1e-16)
        attended = torch.zeros_like(x).index_add(0, target, weight[:, None] * x[source])
        y = self.update(torch.cat([total, top, mean, attended], -1))
        count = (batch[:, None] == torch.arange(2)).sum(0).clamp(min=1)
        return torch.zeros(2, y.shape[1]).index_add(0, batch, y) / count[:, None]


@model("torch")
def graph_reductions() -> tuple[Any, ...]:
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2], [1, 0, 3, 2, 5, 4, 2, 1]])
    return seeded(GraphLayers).eval(), (torch.randn(7, 6), edges, torch.tensor([0, 0, 0, 0, 1, 1, 1]))


@model("torch")
def sinkhorn_distance_gradient() -> tuple[Any, ...]:
    torch.manual_seed(0)

    def distance(x: Tensor, y: Tensor) -> Tensor:
        cost = torch.cdist(x, y, p=1)
        f, g = torch.zeros(x.shape[0]), torch.zeros(y.shape[0])
        for _ in range(8):
            f = -0.1 * torch.logsumexp((g[None] - cost) / 0.1 - math.log(y.shape[0]), dim=1)
            g = -0.1 * torch.logsumexp((f[:, None] - cost) / 0.1 - math.log(x.shape[0]), dim=0)
        plan = torch.exp((f[:, None] + g[None] - cost) / 0.1)
        return (plan * cost).sum() / (x.shape[0] * y.shape[0])

    return torch.func.grad_and_value(distance), (torch.randn(5, 2), torch.randn(6, 2))


class FakeQuantised(nn.Module):
    """Weights by channel, activations by tensor, rounded and scaled back; straight-through by detach."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(10, 12), nn.Linear(12, 4)

    def weight(self, w: Tensor) -> Tensor:
        scale = w.abs().amax(dim=1) / 127
        return torch.fake_quantize_per_channel_affine(
            w, scale, torch.zeros(w.shape[0], dtype=torch.int32), 0, -127, 127
        )

    def forward(self, x: Tensor) -> Tensor:
        low, high = x.min().clamp(max=0), x.max().clamp(min=0)
        scale = (high - low) / 255
        zero = torch.clamp(torch.round(-low / scale), 0, 255)
        quantised = torch.clamp(torch.round(x / scale) + zero, 0, 255)
        x = x + ((quantised - zero) * scale - x).detach()
        h = F.relu(F.linear(x, self.weight(self.a.weight), self.a.bias))
        h = torch.fake_quantize_per_tensor_affine(h, 0.05, 3, 0, 255)
        return F.linear(h, self.weight(self.b.weight), self.b.bias)


@model("torch")
def fake_quantisation() -> tuple[Any, ...]:
    return seeded(FakeQuantised).eval(), (torch.randn(6, 10),)


@model("torch")
def integer_matrix_product() -> tuple[Any, ...]:
    torch.manual_seed(0)

    def product(x: Tensor, w: Tensor, scale: Tensor) -> Tensor:
        top = x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        q = torch.round(x * (127 / top)).to(torch.int8)
        total = q.to(torch.int32) @ w.to(torch.int32).t()
        return total.to(torch.float32) * (top / 127) * scale

    w = torch.randint(-127, 128, (5, 16), dtype=torch.int8)
    return product, (torch.randn(3, 16), w, torch.rand(5))


@model("torch")
def moving_average_teacher() -> tuple[Any, ...]:
    student, teacher = seeded(lambda: nn.Linear(6, 4)), nn.Linear(6, 4)

    def step(x: Tensor, momentum: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        with torch.no_grad():
            new = {
                name: momentum * p + (1 - momentum) * dict(student.named_parameters())[name]
                for name, p in teacher.named_parameters()
            }
        target = F.softmax(torch.func.functional_call(teacher, new, (x,)) / 0.04, dim=-1)
        return new, torch.sum(-target * F.log_softmax(student(x) / 0.1, dim=-1), dim=-1).mean()

    return step, (torch.randn(5, 6), torch.tensor(0.996))


@model("torch")
def paired_contrastive_gradient() -> tuple[Any, ...]:
    torch.manual_seed(0)

    def loss(a: Tensor, b: Tensor, log_scale: Tensor) -> Tensor:
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        logits = log_scale.exp() * a @ b.t()
        labels = torch.arange(a.shape[0])
        return (F.cross_entropy(logits, labels, label_smoothing=0.1) + F.cross_entropy(logits.t(), labels)) / 2

    return torch.func.grad_and_value(loss, argnums=(0, 1, 2)), (torch.randn(6, 5), torch.randn(6, 5), torch.tensor(2.6))


@model("torch")
def focal_and_dice_gradient() -> tuple[Any, ...]:
    torch.manual_seed(0)

    def loss(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        p = torch.sigmoid(logits)
        entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none", pos_weight=torch.tensor(2.0))
        agree = p * target + (1 - p) * (1 - target)
        focal = ((0.25 * target + 0.75 * (1 - target)) * entropy * (1 - agree) ** 2).mean()
        dice = 1 - (2 * (p * target).sum((1, 2)) + 1) / (p.sum((1, 2)) + target.sum((1, 2)) + 1)
        return focal + dice.mean(), focal

    return torch.func.grad(loss, has_aux=True), (torch.randn(3, 6, 6), (torch.rand(3, 6, 6) > 0.6).float())


def speech_loss(log_probs: Tensor, targets: Tensor, lengths: Tensor, sizes: Tensor) -> Tensor:
    return F.ctc_loss(log_probs.log_softmax(-1), targets, lengths, sizes, blank=0, zero_infinity=True)


def speech_data() -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    targets = torch.tensor([[1, 2, 2, 3], [4, 4, 1, 0]])
    return torch.randn(10, 2, 6), targets, torch.tensor([10, 8]), torch.tensor([4, 3])


@model("torch")
def connectionist_temporal_loss() -> tuple[Any, ...]:
    return speech_loss, speech_data()


@model("torch")
def connectionist_temporal_gradient() -> tuple[Any, ...]:
    return torch.func.grad(speech_loss), speech_data()


@model("torch")
def physics_residual_gradient() -> tuple[Any, ...]:
    net = seeded(lambda: nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))).double()
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def u(parameters: dict[str, Tensor], point: Tensor) -> Tensor:
        return torch.func.functional_call(net, parameters, (point,)).squeeze()

    def residual(parameters: dict[str, Tensor], points: Tensor) -> Tensor:
        first = torch.vmap(torch.func.grad(u, argnums=1), (None, 0))(parameters, points)
        second = torch.vmap(torch.func.hessian(u, argnums=1), (None, 0))(parameters, points)
        value = torch.vmap(u, (None, 0))(parameters, points)
        return (first[:, 0] + value * first[:, 1] - 0.01 * second[:, 1, 1]).square().mean()

    return torch.func.grad_and_value(residual), (parameters, torch.rand(6, 2, dtype=torch.float64))


@model("torch")
def point_cloud_features() -> tuple[Any, ...]:
    net = seeded(lambda: nn.Sequential(nn.Conv2d(6, 8, 1), nn.BatchNorm2d(8), nn.LeakyReLU(0.2))).eval()

    def edges(points: Tensor) -> Tensor:
        inner = -2 * torch.matmul(points.transpose(2, 1), points)
        square = torch.sum(points**2, dim=1, keepdim=True)
        nearest = (-square - inner - square.transpose(2, 1)).topk(k=4, dim=-1)[1]
        b, c, n = points.shape
        flat = points.transpose(2, 1).reshape(b * n, c)
        around = flat[(nearest + torch.arange(b).view(-1, 1, 1) * n).view(-1)].view(b, n, 4, c)
        centre = points.transpose(2, 1).unsqueeze(2).expand_as(around)
        return net(torch.cat([around - centre, centre], dim=3).permute(0, 3, 1, 2)).max(dim=-1)[0]

    return edges, (torch.randn(2, 3, 10),)


@model("torch")
def beam_search_steps() -> tuple[Any, ...]:
    net = seeded(lambda: nn.Embedding(7, 7))

    def search(start: Tensor) -> tuple[Tensor, Tensor]:
        scores = torch.tensor([0.0, -1e9, -1e9]).repeat(start.shape[0], 1)
        sequences = start[:, None, None].expand(-1, 3, 1)
        for step in range(4):
            logits = (net(sequences[:, :, -1]) + 0.1 * step * net.weight[step]).log_softmax(-1)
            logits[:, :, 0] -= 1.5
            scores, flat = (scores[:, :, None] + logits).flatten(1).topk(3, dim=-1)
            parent = torch.div(flat, 7, rounding_mode="floor")
            sequences = torch.gather(sequences, 1, parent[:, :, None].expand(-1, -1, sequences.shape[2]))
            sequences = torch.cat([sequences, (flat % 7)[:, :, None]], dim=2)
        return sequences, scores

    return search, (torch.tensor([1, 4]),)


@model("torch")
def box_suppression_scores() -> tuple[Any, ...]:
    torch.manual_seed(0)

    def suppress(corner: Tensor, size: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        boxes = torch.cat([corner, corner + size.exp()], 1)
        order = scores.argsort(descending=True)
        boxes, scores = boxes[order], scores[order]
        area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        low = torch.max(boxes[:, None, :2], boxes[None, :, :2])
        high = torch.min(boxes[:, None, 2:], boxes[None, :, 2:])
        overlap = (high - low).clamp(min=0).prod(2)
        iou = (overlap / (area[:, None] + area[None] - overlap)).triu(diagonal=1)
        worst = iou.max(dim=0).values
        decay = ((1 - iou) / (1 - worst[:, None]).clamp(min=1e-6)).min(dim=0).values
        return scores * decay, order

    return suppress, (torch.rand(8, 2) * 3, torch.rand(8, 2), torch.rand(8))


@model("torch")
def muon_orthogonal_update() -> tuple[Any, ...]:
    torch.manual_seed(0)

    def update(gradient: Tensor, momentum: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        momentum = torch.lerp(momentum, gradient, 0.05)
        x = (gradient + 0.95 * momentum).bfloat16()
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return torch.addcmul(weight, x.float(), torch.full_like(weight, -0.02)), momentum

    return update, (torch.randn(6, 8), torch.randn(6, 8), torch.randn(6, 8))
