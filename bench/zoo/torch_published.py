"""Models of transformers, timm, torchvision and torch_geometric, from small configurations with random weights."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from bench.zoo import model

IDS = torch.tensor([[3, 7, 1, 9, 2, 4, 11, 5]])
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99}

_stubs: list[Any] = []


def with_torchvision() -> None:
    """Import torchvision; where its compiled operators do not load, they are declared so that all else works."""
    if _stubs:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms", "roi_align", "qroi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"):
        for full in (name, f"_{name}_backward"):
            if not hasattr(torch.ops.torchvision, full):
                with contextlib.suppress(RuntimeError):
                    library.define(f"{full}() -> Tensor")
    _stubs.append(library)
    import torchvision  # noqa: F401


def _seeded(build: Any, *args: Any, dtype: torch.dtype = torch.float32, **kwargs: Any) -> Any:
    torch.manual_seed(0)
    return build(*args, **kwargs).eval().to(dtype)


TEXT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertModel", SMALL),
    "bert_classifier": ("BertConfig", "BertForSequenceClassification", SMALL),
    "roberta": ("RobertaConfig", "RobertaForMaskedLM", SMALL),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertForMaskedLM",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 99},
    ),
    "electra": ("ElectraConfig", "ElectraModel", SMALL | {"embedding_size": 16}),
    "albert": ("AlbertConfig", "AlbertModel", SMALL | {"embedding_size": 16}),
    "deberta_v2": (
        "DebertaV2Config",
        "DebertaV2Model",
        SMALL | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
    ),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99}),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", SMALL),
    "opt": (
        "OPTConfig",
        "OPTForCausalLM",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64, "vocab_size": 99}
        | {"word_embed_proj_dim": 32},
    ),
    "bloom": ("BloomConfig", "BloomForCausalLM", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99}),
    "llama": ("LlamaConfig", "LlamaForCausalLM", SMALL | {"num_key_value_heads": 2}),
    "mistral": ("MistralConfig", "MistralForCausalLM", SMALL | {"num_key_value_heads": 2, "sliding_window": 4}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", SMALL | {"num_key_value_heads": 2}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", SMALL | {"num_key_value_heads": 2, "head_dim": 8}),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", SMALL | {"num_key_value_heads": 1, "head_dim": 8}),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", SMALL | {"num_key_value_heads": 2, "head_dim": 8}),
    "phi": ("PhiConfig", "PhiForCausalLM", SMALL),
    "falcon": ("FalconConfig", "FalconForCausalLM", {k: v for k, v in SMALL.items() if k != "intermediate_size"}),
    "mixtral": (
        "MixtralConfig",
        "MixtralForCausalLM",
        SMALL | {"num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "qwen2_moe": (
        "Qwen2MoeConfig",
        "Qwen2MoeForCausalLM",
        SMALL
        | {"num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
        | {"shared_expert_intermediate_size": 16},
    ),
    "mamba": (
        "MambaConfig",
        "MambaForCausalLM",
        {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 99, "state_size": 4},
    ),
    "rwkv": ("RwkvConfig", "RwkvForCausalLM", {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 99}),
    "xlnet": ("XLNetConfig", "XLNetModel", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "vocab_size": 99}),
    "fnet": ("FNetConfig", "FNetModel", SMALL),
}


def _text(name: str, config: str, build: str, settings: dict[str, Any], dtype: torch.dtype, **more: Any) -> None:
    suffix = "" if dtype == torch.float32 else f"_{str(dtype).removeprefix('torch.')}"

    @model("torch", name + suffix)
    def make() -> tuple[Any, ...]:
        with_torchvision()
        import transformers

        settled = getattr(transformers, config)(**settings, **more)
        net = _seeded(getattr(transformers, build), settled, dtype=dtype)
        return net, (), {"input_ids": IDS} | ({"use_cache": False} if "ForCausal" in build or "LMHead" in build else {})


for _name, (_config, _build, _settings) in TEXT.items():
    _text(_name, _config, _build, _settings, torch.float32)
_text("gpt2_eager", "GPT2Config", "GPT2LMHeadModel", TEXT["gpt2"][2], torch.float32, attn_implementation="eager")
for _name in ("bert", "llama", "gpt2"):
    _config, _build, _settings = TEXT[_name]
    for _dtype in (torch.bfloat16, torch.float16):
        _text(_name, _config, _build, _settings, _dtype)


@model("torch")
def llama_cache_step() -> tuple[Any, ...]:
    """One token with a key-value cache of 5 places, given and returned as tensors."""
    with_torchvision()
    import transformers

    net = _seeded(transformers.LlamaForCausalLM, transformers.LlamaConfig(**SMALL, num_key_value_heads=2))

    def step(ids: torch.Tensor, keys: list[torch.Tensor], values: list[torch.Tensor]) -> Any:
        cache = transformers.DynamicCache()
        for layer, (k, v) in enumerate(zip(keys, values, strict=True)):
            cache.update(k, v, layer)
        out = net(input_ids=ids, past_key_values=cache, use_cache=True)
        return out.logits, [layer.keys for layer in cache.layers], [layer.values for layer in cache.layers]

    torch.manual_seed(1)
    return step, (IDS[:, :1], [torch.randn(1, 2, 5, 8) for _ in range(2)], [torch.randn(1, 2, 5, 8) for _ in range(2)])


def _encoder_decoder(name: str, config: str, build: str, settings: dict[str, Any]) -> None:
    @model("torch", name)
    def make() -> tuple[Any, ...]:
        with_torchvision()
        import transformers

        net = _seeded(getattr(transformers, build), getattr(transformers, config)(**settings))
        return net, (), {"input_ids": IDS, "decoder_input_ids": IDS[:, :4], "use_cache": False}


_encoder_decoder(
    "t5",
    "T5Config",
    "T5ForConditionalGeneration",
    {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 99},
)
_D = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "vocab_size": 99}
_D |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 64}
_encoder_decoder("bart", "BartConfig", "BartForConditionalGeneration", _D)
_encoder_decoder("marian", "MarianConfig", "MarianMTModel", _D | {"pad_token_id": 0})


@model("torch")
def whisper_encoder() -> tuple[Any, ...]:
    with_torchvision()
    import transformers

    config = transformers.WhisperConfig(
        **_D, num_mel_bins=8, max_source_positions=12, max_target_positions=20, pad_token_id=0
    )
    net = _seeded(transformers.WhisperModel, config).get_encoder()
    return net, (torch.randn(1, 8, 24),)


@model("torch")
def whisper() -> tuple[Any, ...]:
    with_torchvision()
    import transformers

    config = transformers.WhisperConfig(
        **_D, num_mel_bins=8, max_source_positions=12, max_target_positions=20, pad_token_id=0
    )
    net = _seeded(transformers.WhisperForConditionalGeneration, config)
    return net, (torch.randn(1, 8, 24),), {"decoder_input_ids": IDS[:, :4], "use_cache": False}


VISION: dict[str, tuple[str, str, dict[str, Any], tuple[int, ...]]] = {
    "vit": ("ViTConfig", "ViTForImageClassification", SMALL | {"image_size": 16, "patch_size": 8}, (1, 3, 16, 16)),
    "deit": ("DeiTConfig", "DeiTModel", SMALL | {"image_size": 16, "patch_size": 8}, (1, 3, 16, 16)),
    "dinov2": ("Dinov2Config", "Dinov2Model", SMALL | {"image_size": 28, "patch_size": 14}, (1, 3, 28, 28)),
    "swin": (
        "SwinConfig",
        "SwinModel",
        {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4},
        (1, 3, 16, 16),
    ),
    "convnext": (
        "ConvNextConfig",
        "ConvNextModel",
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
        (1, 3, 16, 16),
    ),
    "resnet_hf": (
        "ResNetConfig",
        "ResNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
        (1, 3, 16, 16),
    ),
    "segformer": (
        "SegformerConfig",
        "SegformerForSemanticSegmentation",
        {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [8, 16]}
        | {"num_attention_heads": [1, 2], "patch_sizes": [3, 3], "strides": [2, 2], "mlp_ratios": [2, 2]}
        | {"decoder_hidden_size": 16},
        (1, 3, 16, 16),
    ),
    "wav2vec2": (
        "Wav2Vec2Config",
        "Wav2Vec2Model",
        {k: v for k, v in SMALL.items() if k != "vocab_size"}
        | {"conv_dim": [8, 8], "conv_stride": [4, 2], "conv_kernel": [8, 4], "num_feat_extract_layers": 2}
        | {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2},
        (1, 200),
    ),
}


def _vision(name: str, config: str, build: str, settings: dict[str, Any], shape: tuple[int, ...]) -> None:
    @model("torch", name)
    def make() -> tuple[Any, ...]:
        with_torchvision()
        import transformers

        net = _seeded(getattr(transformers, build), getattr(transformers, config)(**settings))
        return net, (torch.randn(shape),)


for _name, (_config, _build, _settings, _shape) in VISION.items():
    _vision(_name, _config, _build, _settings, _shape)


@model("torch")
def clip() -> tuple[Any, ...]:
    with_torchvision()
    import transformers

    config = transformers.CLIPConfig(
        text_config=SMALL | {"max_position_embeddings": 16, "eos_token_id": 5},
        vision_config={k: v for k, v in SMALL.items() if k != "vocab_size"} | {"image_size": 16, "patch_size": 8},
        projection_dim=16,
    )
    net = _seeded(transformers.CLIPModel, config)
    return net, (), {"input_ids": IDS, "pixel_values": torch.randn(1, 3, 16, 16)}


def _timm(name: str, size: int, **settings: Any) -> None:
    @model("torch", f"timm_{name}")
    def make() -> tuple[Any, ...]:
        with_torchvision()
        import timm

        torch.manual_seed(0)
        net = timm.create_model(name, pretrained=False, num_classes=5, **settings).eval()
        return net, (torch.randn(1, 3, size, size),)


_timm("resnet10t", 32)
_timm("mobilenetv3_small_050", 32)
_timm("efficientnet_lite0", 32)
_timm("convnext_atto", 32, depths=(1, 1, 1, 1), dims=(8, 16, 24, 32))
_timm("vit_tiny_patch16_224", 32, img_size=32, embed_dim=32, depth=2, num_heads=4)
_timm("mixer_s16_224", 32, img_size=32)
_timm("regnetx_002", 32)
_timm("densenet121", 32, growth_rate=4, block_config=(1, 1, 1, 1))
_timm("ghostnet_050", 32)


def _torchvision(name: str, size: int, batch: int = 1, **settings: Any) -> None:
    @model("torch", f"torchvision_{name.replace('.', '_')}")
    def make() -> tuple[Any, ...]:
        with_torchvision()
        import torchvision

        found = torchvision.models
        for part in name.split("."):
            found = getattr(found, part)
        torch.manual_seed(0)
        return found(weights=None, **settings).eval(), (torch.randn(batch, 3, size, size),)


_torchvision("squeezenet1_1", 48, num_classes=5)
_torchvision("shufflenet_v2_x0_5", 32, num_classes=5)
_torchvision("mobilenet_v2", 32, num_classes=5, width_mult=0.25)
_torchvision("mnasnet0_5", 32, num_classes=5)
_torchvision("segmentation.lraspp_mobilenet_v3_large", 32, num_classes=3, weights_backbone=None)


@model("torch")
def gcn() -> tuple[Any, ...]:
    from torch_geometric.nn import GCNConv

    torch.manual_seed(0)
    net = GCNConv(4, 3, add_self_loops=False, normalize=False)
    return net, (torch.randn(5, 4), torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]]))


@model("torch")
def graph_attention() -> tuple[Any, ...]:
    from torch_geometric.nn import GATConv, SAGEConv, global_mean_pool

    torch.manual_seed(0)
    attend, gather = GATConv(4, 3, heads=2, add_self_loops=False), SAGEConv(6, 3)

    def run(x: torch.Tensor, edges: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return global_mean_pool(gather(attend(x, edges).relu(), edges), batch, 2)

    edges = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
    return run, (torch.randn(5, 4), edges, torch.tensor([0, 0, 0, 1, 1]))
