"""Whole models and training steps of ``bench/zoo``, captured and compared: tiny, with the layers that people use."""

from __future__ import annotations

import pytest
import torch
from torch_oracle import capture as script
from torch_oracle import captured, checked, relative

from bench.zoo import MODELS, torch_training, torch_written

MODULES = (torch_training.__name__, torch_written.__name__)
ENTRIES = {m.name: m.make for m in MODELS if m.frontend == "torch" and m.make.__module__ in MODULES}
LIMITS = {"resnet_bfloat16": 0.02, "resnet_autocast": 0.02, "resnet_float64": 1e-13}
MODELS_TESTED = (
    *("resnet_in_training", "resnet_bfloat16", "resnet_autocast", "resnet_float64", "unet_transposed", "vae"),
    *("diffusion_unet", "wavenet", "normalizing_flow", "message_passing", "kan", "seq2seq_attention", "gru_layers"),
    *("transformer", "grouped_query_attention", "mixture_of_experts", "fourier_operator", "gaussian_process"),
    *("multivariate_normal", "tied_language_model", "rotary_cache_step", "linear_recurrence", "ppo_loss"),
)
STEPS_TESTED = (
    *("adam_functional", "sgd_optimizer", "adamw_optimizer", "backward_call", "resnet_gradient", "lstm_gradient"),
    *("hessian_vector_product", "per_sample_gradients", "maml_step", "wgan_penalty", "convolution_gradients"),
    *("pinn", "attention_gradient"),
)


@pytest.mark.parametrize("name", [*MODELS_TESTED, *STEPS_TESTED])
def test_a_model_matches(name: str) -> None:
    torch.manual_seed(5)
    fn, args, *kwargs = ENTRIES[name]()
    found = relative(captured(fn, *args, **(kwargs[0] if kwargs else {})))
    assert found
    assert max(found) < LIMITS.get(name, 2e-5)


def test_a_planted_error_in_a_model_is_found() -> None:
    torch.manual_seed(5)
    fn, args = ENTRIES["transformer"]()
    artifact = script.export(fn, *args)
    node = [node for node in artifact["nodes"] if node["op"] == "reduce" and node["attrs"]["reducer"] == "add"][-1]
    node["attrs"]["reducer"] = "maximum"
    assert max(relative(checked(artifact))) > 1e-3
