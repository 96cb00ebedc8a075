"""The whole network: shapes, corners, ablations, parameters, and its own random start."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.nn import ArchitectureConfig, FeatureTokenizer, TabNSM
from tabnsm.nn.attention import merge_heads, split_heads
from tests.oracles import network as oracle


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_bins_encode_numbers_and_leave_the_rest_linear() -> None:
    bins = torch.full((4, 2, 3), torch.inf)
    bins[0] = torch.tensor([[0.0, 1.0, torch.inf], [1.0, 2.0, 1.0]])
    tokenizer = FeatureTokenizer(4, 16, [0, 0, 5, 0], bins, generator(0))
    linear = FeatureTokenizer(4, 16, [0, 0, 5, 0], None, generator(0))
    x = torch.tensor([[0.5, 1.0, 2.0, 0.0], [-3.0, 1.0, 2.0, 0.0], [2.0, 1.0, 2.0, 0.0]])
    encoded = tokenizer(x) - linear(x)
    assert not encoded[:, 1:].any()
    slopes = tokenizer.slopes
    assert slopes.shape == (2, 16)  # none for a bin that is not there
    expected = torch.stack([0.5 * slopes[0], 0 * slopes[0], slopes[0] + 0.5 * slopes[1]])
    torch.testing.assert_close(encoded[:, 0], expected)


def test_slopes_of_missing_bins_are_left_out_of_older_weights() -> None:
    bins = torch.ones(2, 2, 3)
    bins[1, 0, 2] = torch.inf
    tokenizer = FeatureTokenizer(2, 16, None, bins, generator(0))
    weights = tokenizer.state_dict()
    older = torch.full((2, 3, 16), torch.nan)
    older[0], older[1, :2] = weights["slopes"][:3], weights["slopes"][3:]
    fresh = FeatureTokenizer(2, 16, None, bins, generator(1))
    fresh.load_state_dict(weights | {"slopes": older})
    assert torch.equal(fresh.slopes, tokenizer.slopes)


def test_slopes_begin_smaller_where_a_feature_has_more_bins() -> None:
    bins = torch.ones(2, 2, 64)
    bins[0, 0, 4:] = torch.inf
    slopes = FeatureTokenizer(2, 256, None, bins, generator(0)).slopes
    size = slopes.detach().square().sum(0).mean()  # of both features, each a quarter of a line's
    torch.testing.assert_close(size, torch.tensor(0.5), rtol=0.2, atol=0.0)
    assert slopes[:4].abs().max() > 3 * slopes[4:].abs().max()


def test_tokens_are_the_same_without_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    bins = torch.linspace(-2, 2, 5).repeat(3, 2, 1)
    bins[:, 1] = 1.0
    bins[0, 0, 2:], bins[1, 0] = torch.inf, torch.inf
    tokenizer = FeatureTokenizer(3, 16, None, bins, generator(0))
    x = torch.randn(50, 3, generator=generator(1))
    found = tokenizer(x)
    (slopes,) = torch.autograd.grad(found.square().sum(), tokenizer.slopes)
    monkeypatch.setenv("TABNSM_KERNEL", "none")
    expected = tokenizer(x)
    torch.testing.assert_close(found, expected)
    (right,) = torch.autograd.grad(expected.square().sum(), tokenizer.slopes)
    torch.testing.assert_close(slopes, right, rtol=1e-4, atol=1e-5)


@given(
    n_features=st.integers(1, 30),
    n_rows=st.integers(1, 3),
    window_size=st.integers(1, 8),
    compress_block_size=st.integers(1, 8),
    stride=st.integers(1, 8),
    selection_block_size=st.integers(1, 8),
    n_selected_blocks=st.integers(1, 5),
    n_heads=st.sampled_from([1, 2, 4]),
    gates=st.sampled_from(["head", "feature"]),
)
def test_any_shape_gives_a_finite_number_and_all_gradients(
    n_features: int,
    n_rows: int,
    window_size: int,
    compress_block_size: int,
    stride: int,
    selection_block_size: int,
    n_selected_blocks: int,
    n_heads: int,
    gates: str,
) -> None:
    model = TabNSM(
        n_features,
        d_token=8,
        n_heads=n_heads,
        window_size=window_size,
        compress_block_size=compress_block_size,
        compress_stride=min(stride, compress_block_size),
        selection_block_size=selection_block_size,
        n_selected_blocks=n_selected_blocks,
        gates=gates,
        head_width=8,
        generator=generator(),
    )
    x = torch.randn(n_rows, n_features, generator=generator(1))
    prediction = model(x)
    assert prediction.shape == (n_rows, 1)
    assert prediction.isfinite().all()
    prediction.sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_the_head_sees_parts_of_the_tokens_beside_the_papers_features() -> None:
    model = TabNSM(40, n_token_pools=4, generator=generator()).double()
    x = torch.randn(3, 40, generator=generator(1)).double()
    tokens = model.tokenizer(x)
    parts = [tokens[:, d, 8 * k : 8 * k + 8].mean(-1) for d in range(40) for k in range(4)]
    features = torch.cat([model.interaction(tokens), torch.stack(parts, 1)], dim=1)
    torch.testing.assert_close(model(x), model.head(features))


@pytest.mark.parametrize(
    ("options", "n_pools"),
    [
        ({}, 8),
        ({"n_token_pools": 4}, 4),
        ({"n_token_pools": 0}, 0),
        ({"d_token": 20, "n_heads": 4}, 4),
        ({"d_token": 7, "n_heads": 7}, 1),
    ],
)
def test_parts_divide_the_token(options: dict[str, int], n_pools: int) -> None:
    config = ArchitectureConfig(**options)  # type: ignore[arg-type]
    assert config.resolved_pools(12) == n_pools
    with pytest.raises(InvalidOptionError, match="must be 0 or a power of two, got 6"):
        ArchitectureConfig(n_token_pools=6)
    assert TabNSM(12, **options)(torch.zeros(2, 12)).shape == (2, 1)


def test_forward_is_the_papers_pipeline() -> None:
    """Tokens, attention, mixer and head composed by hand give the model's own answer."""
    options = {"d_token": 8, "n_heads": 2, "mixer_chunk_size": 3, "n_token_pools": 0}
    model = TabNSM(7, **options, generator=generator()).double()
    x = torch.randn(2, 7, generator=generator(1)).double()
    asim, mixer = model.interaction, model.interaction.mixer
    assert mixer is not None
    tokens = oracle.affine_tokens(x, model.tokenizer.weight, model.tokenizer.bias)
    rms = tokens.square().mean(-1, keepdim=True).add(torch.finfo(torch.float64).eps).sqrt()
    attended = asim.attention(tokens / rms * asim.norm.weight)
    parameters = dict(mixer.named_parameters())
    p = {
        "w1": parameters["embedding1.weight"],
        "b1": parameters["embedding1.bias"],
        "w2": parameters["embedding2.weight"],
        "b2": parameters["embedding2.bias"],
        "w3": parameters["feature1.weight"],
        "b3": parameters["feature1.bias"],
        "w4": parameters["feature2.weight"],
        "b4": parameters["feature2.bias"],
    } | {k: parameters[k] for k in ("norm_scale", "norm_shift", "fusion_scale", "fusion_shift")}
    rows = []
    for i in range(2):
        u = asim.token_weight * tokens[i] + attended[i]
        mixed = oracle.mixer(u, p, 3)
        blend = (asim.token_weight, asim.mixed_weight, asim.skip_weight)
        rows.append(oracle.asim(tokens[i], attended[i], mixed, *blend))
    torch.testing.assert_close(model.head(torch.stack(rows)), model(x), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("attention", ["sparse", "full", "mamba"])
@pytest.mark.parametrize("mixer", [True, False])
def test_ablations_swap_the_operator_and_nothing_else(attention: str, mixer: bool) -> None:
    model = TabNSM(25, attention=attention, mixer=mixer, d_token=16, generator=generator())
    reference = TabNSM(25, d_token=16, generator=generator())
    prediction = model(torch.randn(3, 25, generator=generator(1)))
    assert prediction.isfinite().all()

    def others(module: TabNSM) -> set[str]:
        names = {name for name, _ in module.named_parameters()}
        return {n for n in names if ".attention." not in n and ".mixer." not in n}

    assert others(model) == others(reference)
    assert (model.interaction.mixer is not None) == mixer


@pytest.mark.parametrize("attention", ["full", "mamba"])
def test_every_feature_reaches_every_other(attention: str) -> None:
    model = TabNSM(9, attention=attention, d_token=8, generator=generator())
    tokens = torch.randn(1, 9, 8, generator=generator(1), requires_grad=True)
    for position in (0, 8):
        (gradient,) = torch.autograd.grad(
            model.interaction.attention(tokens)[0, position].square().sum(), tokens
        )
        assert (gradient.abs().sum(-1) > 0).all()


def test_without_mixer_z_is_u() -> None:
    model = TabNSM(5, mixer=False, d_token=8, generator=generator())
    asim = model.interaction
    tokens = model.tokenizer(torch.randn(2, 5, generator=generator(1)))
    u = asim.token_weight * tokens + asim.attention(asim.norm(tokens))
    y = asim.mixed_weight * u + u + asim.skip_weight * tokens
    torch.testing.assert_close(asim(tokens), y.mean(-1))


def test_heads_split_and_merge() -> None:
    x = torch.arange(24.0).reshape(1, 3, 8)
    assert split_heads(x, 2).shape == (1, 2, 3, 4)
    assert torch.equal(split_heads(x, 2)[0, 1, 0], torch.tensor([4.0, 5.0, 6.0, 7.0]))
    assert torch.equal(merge_heads(split_heads(x, 2)), x)


def test_parameters_grow_linearly_with_features() -> None:
    def count(n_features: int) -> int:
        return sum(p.numel() for p in TabNSM(n_features).parameters())

    counts = {n: count(n) for n in (1024, 2048, 4096, 8192, 16384)}
    first = (counts[2048] - counts[1024]) / 1024
    for small, large in zip(list(counts)[:-1], list(counts)[1:], strict=True):
        per_feature = (counts[large] - counts[small]) / (large - small)
        assert per_feature == pytest.approx(first, rel=1e-2)


def test_categories_are_embedded_and_unseen_ones_speak_through_the_bias() -> None:
    model = TabNSM(3, category_sizes=[0, 4, 2], d_token=8, generator=generator())
    tokenizer = model.tokenizer
    x = torch.tensor([[0.5, 3.0, 1.0], [0.5, 0.0, 0.0], [0.5, 99.0, -5.0]])
    tokens = tokenizer(x)
    torch.testing.assert_close(tokens[0, 1], tokenizer.table[3] + tokenizer.bias[1])
    torch.testing.assert_close(tokens[0, 2], tokenizer.table[5] + tokenizer.bias[2])
    torch.testing.assert_close(tokens[1, 1:], tokenizer.bias[1:])
    torch.testing.assert_close(
        tokens[:, 0], (0.5 * tokenizer.weight + tokenizer.bias[0]).expand(3, -1)
    )
    assert tokens.isfinite().all()
    model(x).sum().backward()
    assert tokenizer.table.grad is not None


def test_start_comes_from_the_generator_alone() -> None:
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    one, two = (TabNSM(12, generator=generator(3)) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
    other = TabNSM(12, generator=generator(4))
    assert not torch.equal(one.head.mlp1[0].weight, other.head.mlp1[0].weight)


def test_selected_blocks_differ_from_row_to_row() -> None:
    model = TabNSM(60, d_token=16, generator=generator())
    blocks = model.selected_blocks(torch.randn(8, 60, generator=generator(1)))
    assert blocks.shape == (8, 4, 60, 3)
    assert blocks.min() >= 0
    assert blocks.max() <= 5
    assert len({tuple(row.flatten().tolist()) for row in blocks}) > 1
    with pytest.raises(InvalidOptionError, match='needs attention="sparse"'):
        TabNSM(6, attention="full").selected_blocks(torch.zeros(1, 6))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_token": 30}, r"d_token must be a multiple of n_heads \(4\), got 30"),
        ({"window_size": 0}, "window_size must be an integer >= 1, got 0"),
        ({"n_heads": 0}, "n_heads must be an integer >= 1, got 0"),
        ({"compress_stride": 11}, r"from 1 to compress_block_size \(10\), got 11"),
        ({"attention": "dense"}, "attention must be one of .* got 'dense'"),
        ({"head_width": 2.5}, 'head_width must be "auto" or an integer >= 1, got 2.5'),
        ({"d_token": True}, "d_token must be an integer >= 1, got True"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        TabNSM(4, **options)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="n_features must be an integer >= 1, got 0"):
        TabNSM(0)
    with pytest.raises(InvalidOptionError, match=r"n_features must be an integer >= 1, got 2\.0"):
        TabNSM(2.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match=r"one entry per feature \(3\), got 2"):
        TabNSM(3, category_sizes=[0, 1])


@pytest.mark.parametrize("shape", [(5, 1), (5, 4), (3,), (2, 5, 3)])
def test_input_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    """A single column would else be taken for all features."""
    with pytest.raises(InvalidDataError, match=r"shape \(n_rows, 3\), one column per feature, got"):
        TabNSM(3, d_token=8)(torch.zeros(shape))


def test_sizes_may_be_an_array() -> None:
    model = TabNSM(3, d_token=8, category_sizes=np.array([0, 3, 0]))
    assert model(torch.ones(2, 3)).shape == (2, 1)


@pytest.mark.parametrize("options", [{}, {"d_token": 8, "head_width": 7}, {"attention": "mamba"}])
def test_a_row_is_the_same_wherever_it_stands(options: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(0)
    for n_features in (1, 2, 7, 9, 13, 18, 22, 27, 50):
        model = TabNSM(n_features, generator=generator, **options).eval()
        rows = torch.randn(1, n_features, generator=generator).expand(16, -1).contiguous()
        with torch.inference_mode():
            predictions = model(rows)
        assert torch.equal(predictions, predictions[:1].expand(16, 1)), n_features


def test_config_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ArchitectureConfig().d_token = 8  # type: ignore[misc]


@pytest.mark.parametrize("n_targets", [1, 3])
def test_every_target_has_a_prediction_of_its_own(n_targets: int) -> None:
    model = TabNSM(7, d_token=8, n_targets=n_targets, generator=generator())
    x = torch.randn(5, 7, generator=generator(1))
    prediction = model(x)
    assert prediction.shape == (5, n_targets)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(x), prediction)
    assert torch.linalg.matrix_rank(prediction.double()) == n_targets
    with pytest.raises(InvalidOptionError, match="n_targets must be an integer >= 1, got 0"):
        TabNSM(7, n_targets=0)
