"""Every layer under the machinery of torch: one test for each piece.

Of layers that `layer_checks` has by their name, its checks ask more: they are called of the right
layer in `tests/layer_checks/test_wrong_versions.py`. Here these laws are asked of the others.
"""

import copy
import io
import pickle
import shutil

import pytest
import torch
from torch import Tensor, nn

from layer_checks.registry import LAYERS
from tests.transformer_layers.comparisons import (
    assert_same,
    relative_error,
    unit_roundoff,
    values_and_gradients,
    with_random_weights,
)
from tests.transformer_layers.layer_cases import CASES, Apply, LayerCase

# The tracers would trace the wrapper that checks shapes, and vmap would check the wrong ones.
pytestmark = pytest.mark.usefixtures("as_users_run_it")

BATCH, SEQ = 3, 5
OTHER_SIZE = (7, 11)
over_all_layers = pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES])
over_all_without_checks = pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name) for c in CASES if c.name not in LAYERS]
)


def build(case: LayerCase, training: bool = False) -> nn.Module:
    return with_random_weights(case.make()).train(training)


def to_dtype(inputs: tuple[Tensor, ...], dtype: torch.dtype) -> tuple[Tensor, ...]:
    return tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)


@pytest.fixture(autouse=True)
def _nothing_compiled_before() -> None:
    torch._dynamo.reset()


def slow_in(case: LayerCase, mode: str) -> object:
    """A layer in a mode; for the nightly run where another case has it, or it is the same."""
    marks = () if case.compiled in (mode, "both") else pytest.mark.nightly
    return pytest.param(case, mode == "training", id=f"{mode}-{case.name}", marks=marks)


slow_over_all_layers = pytest.mark.parametrize(
    ("case", "training"), [slow_in(c, mode) for c in CASES for mode in ("eval", "training")]
)


@slow_over_all_layers
def test_compiles_as_one_graph_whatever_the_size(case, training):
    layer = build(case, training)
    graphs = []

    def backend(graph, example_inputs):
        graphs.append(graph)
        return torch._dynamo.lookup_backend("aot_eager")(graph, example_inputs)

    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True, dynamic=True, backend=backend)
    for batch, seq in [(BATCH, SEQ), OTHER_SIZE]:
        inputs = case.inputs(batch, seq)
        torch.manual_seed(1)
        ours = values_and_gradients(layer, inputs, list(layer.parameters()))
        torch.manual_seed(1)
        theirs = values_and_gradients(compiled, inputs, list(compiled.parameters()))
        assert_same(theirs, ours, tolerance=16 * unit_roundoff(torch.float32))
    assert len(graphs) <= 2  # one for the first size at most, and one for all others
    assert_same(list(compiled.buffers()), list(layer.buffers()), tolerance=1e-6)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # torch's own
@pytest.mark.skipif(shutil.which("c++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.nightly
def test_compiles_to_machine_code():
    import torch._inductor.config

    import transformer_layers as tl

    stack = nn.Sequential(
        tl.Conv1D(6, 8),
        tl.LayerNorm(8),
        Apply(tl.gelu),
        Apply(tl.gelu_tanh),
        tl.RMSNorm(8),
        tl.BatchNorm1d(8, momentum=None),
        tl.Dropout(0.5).eval(),
    )
    with_random_weights(stack)
    # Processes that compile beside this one would import torch first, for one graph.
    with torch._inductor.config.patch(compile_threads=1), torch.no_grad():
        compiled = torch.compile(copy.deepcopy(stack), fullgraph=True, dynamic=True)
        results = [(compiled(x), stack(x)) for x in (torch.randn(3, 6), torch.randn(7, 6))]
    for actual, expected in results:
        assert relative_error(actual, expected) <= 64 * unit_roundoff(torch.float32)
    assert_same(list(compiled.buffers()), list(stack.buffers()), tolerance=1e-6)


@slow_over_all_layers
def test_exports_with_dynamic_batch_and_sequence(case, training):
    layer = build(case, training)
    inputs = case.inputs(BATCH, SEQ)
    dims = {BATCH: torch.export.Dim("batch"), SEQ: torch.export.Dim("seq", max=case.max_seq)}
    shapes = tuple({i: dims[n] for i, n in enumerate(x.shape) if n in dims} for x in inputs)
    exported = torch.export.export(Apply(copy.deepcopy(layer)), inputs, dynamic_shapes=(shapes,))
    inputs = case.inputs(*OTHER_SIZE)
    torch.manual_seed(1)
    expected = layer(*inputs)
    torch.manual_seed(1)
    actual = exported.module()(*inputs)
    assert relative_error(actual, expected) <= 16 * unit_roundoff(torch.float32)


@over_all_layers
def test_the_meta_device_gives_shape_and_dtype(case):
    with torch.device("meta"):
        layer = case.make()
    inputs = case.inputs(BATCH, SEQ)
    expected, result = build(case, training=True)(*inputs), layer(*(x.to("meta") for x in inputs))
    assert result.is_meta
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)


def pickled(layer, case):
    return pickle.loads(pickle.dumps(layer))


def from_state_dict(layer, case):
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    fresh = case.make()
    fresh.load_state_dict(torch.load(file, weights_only=True), strict=True)
    return fresh.train(layer.training)


@over_all_without_checks
@pytest.mark.parametrize("copied", [pickled, from_state_dict])
def test_a_copy_is_exact_and_independent(case, copied):
    layer = build(case, training=True)
    inputs = case.inputs(BATCH, SEQ)
    layer(*inputs)  # moves the buffers away from their initial values
    layer.eval()
    twin = copied(layer, case)
    before = layer(*inputs)
    assert torch.equal(twin(*inputs), before)
    with torch.no_grad():
        for tensor in twin.state_dict().values():
            tensor.add_(1)
    assert torch.equal(layer(*inputs), before)


@over_all_layers
def test_inference_mode_gives_the_same(case):
    layer = build(case, training=True)
    twin = copy.deepcopy(layer)
    inputs = case.inputs(BATCH, SEQ)
    torch.manual_seed(1)
    expected = layer(*inputs)
    with torch.inference_mode():
        torch.manual_seed(1)
        actual = twin(*inputs)
    assert not actual.requires_grad
    assert torch.equal(actual, expected)


@over_all_without_checks
def test_autocast_stays_near_float32_and_trains(case):
    layer = build(case, training=True)
    inputs = case.inputs(BATCH, SEQ)
    twin = copy.deepcopy(layer)
    torch.manual_seed(1)
    expected = layer(*inputs)
    torch.manual_seed(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = twin(*inputs)
        torch.manual_seed(1)
        from_low = twin(*to_dtype(inputs, torch.bfloat16))  # as behind a linear layer
    tolerance = 16 * unit_roundoff(torch.bfloat16)
    assert relative_error(actual, expected) <= tolerance
    if not list(layer.buffers()):
        assert relative_error(from_low, expected) <= tolerance
    if not list(twin.parameters()):
        return
    from_low.float().sum().backward()
    for parameter in twin.parameters():
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all()


@over_all_without_checks
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_a_layer_of_another_dtype_keeps_it(case, dtype):
    layer = build(case).to(dtype)
    result = layer(*to_dtype(case.inputs(BATCH, SEQ), dtype))
    scalar_of_low = result.ndim == 0 and dtype != torch.float64
    assert result.dtype == (torch.float32 if scalar_of_low else dtype)
    assert result.isfinite().all()


@over_all_without_checks
def test_an_empty_batch_has_an_empty_result(case):
    layer = build(case, training=True)
    full = layer(*case.inputs(BATCH, SEQ))
    buffers = [b.clone() for b in layer.buffers()]
    inputs = case.inputs(0, SEQ)
    result, *gradients = values_and_gradients(layer, inputs, list(layer.parameters()))
    assert result.shape == ((0, *full.shape[1:]) if full.ndim else ())
    assert result.isfinite().all()
    assert all(torch.equal(g, torch.zeros_like(g)) for g in gradients)
    assert all(torch.equal(a, b) for a, b in zip(layer.buffers(), buffers, strict=True))


@over_all_without_checks
def test_the_layout_in_memory_does_not_matter(case):
    layer = build(case).double()
    inputs = to_dtype(case.inputs(BATCH, SEQ), torch.float64)
    scattered = tuple(
        x.transpose(0, -1).contiguous().transpose(0, -1) if x.ndim > 1 else x for x in inputs
    )
    assert not any(x.is_contiguous() for x in scattered if x.ndim > 1)
    parameters = list(layer.parameters())
    expected = values_and_gradients(layer, inputs, parameters)
    assert_same(values_and_gradients(layer, scattered, parameters), expected)
