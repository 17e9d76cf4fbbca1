"""Figures that a reader moves: what they compute is torch's, and they move anywhere."""

import itertools
import math
import re
from base64 import b64decode
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from bs4 import BeautifulSoup

from evaluation.experiments.induction import trained
from tests.book_results import kept_by_the_book
from tests.site.conftest import DESKTOP, NARROW, Visit, watch
from tests.site.screens import resize
from tests.site.serving import ROOT
from transformer_layers import (
    GPT2,
    BatchNorm1d,
    GatedFeedForward,
    GPT2Config,
    KeyValueCache,
    LayerNorm,
    PaperLengthPenalty,
    PlainLengthPenalty,
    RotaryPositions,
    Tokenizer,
    Transformer,
    TransformerConfig,
    attention_weights,
    causal_mask,
    gelu_tanh,
    next_token_distribution,
    sinusoidal_positions,
    sliding_window_mask,
    smoothed_cross_entropy,
    soft_threshold,
)
from transformer_layers.generation.beam_search import beam_search
from transformer_layers.tokenizers.byte_pairs import train
from transformer_training.toy_language import encode, trained_model

pytestmark = pytest.mark.xdist_group("site in use")

SHARED = ROOT / "src" / "book_site" / "interactive" / "static" / "book_site_interactive.js"
OWN = ROOT / "book" / "_static" / "interactive"
INPUTS = 20

PAGES = {
    "attention_heads": "index.html",
    "forward": "one_page.html",
    "cache": "gpt2/generation.html",
    "cache_mask": "attention/gpt2_attention.html",
    "heads_out": "attention/multi_head_attention.html",
    "lookup": "gpt2/inside_a_trained_model.html",
    "gpt2": "gpt2/quickstart.html",
    "dropout": "normalization/dropout.html",
    "accumulation": "gpt2/training.html",
    "adapter": "gpt2/fine_tuning.html",
    "activations": "feed_forward/activations.html",
    "hidden_features": "feed_forward/feed_forward.html",
    "encoder_layer": "proofs/encoder_layer.html",
    "ladder": "gpt2/loading_weights.html",
    "norm_placement": "transformers/norm_placement.html",
    "penalties": "normalization/penalties.html",
    "positions": "transformers/positions.html",
    "residuals": "feed_forward/residual_connections.html",
    "attention_scale": "attention/scaled_dot_product_attention.html",
    "layer_norm": "normalization/layer_normalization.html",
    "masks": "attention/masks.html",
    "sampling": "gpt2/generation.html",
    "batch_norm": "normalization/batch_normalization.html",
    "rotary": "llama/rotary_positions.html",
    "longer": "llama/longer_texts.html",
    "gates": "llama/rms_norm_and_gates.html",
    "merges": "gpt2/tokenizer.html",
    "shared_keys": "llama/sharing_keys.html",
    "reach": "llama/far_away.html",
    "four_edits": "llama/from_gpt2_to_llama.html",
    "ranks": "gpt2/beyond_one_machine.html",
    "alignment": "seq2seq/looking_at_another_sentence.html",
    "decoder_cache": "seq2seq/decoder.html",
    "label_smoothing": "seq2seq/whole_model_trained.html",
    "beam_search": "seq2seq/beam_search.html",
}


@dataclass
class Computed:
    """What a page computes, and torch of the same numbers.

    Attributes:
        draw: Makes the arguments of both.
        page: The function in the page; each of the arguments arrives as JSON has it.
        torch: The function in torch, of tensors where the arguments are tensors.
    """

    draw: Callable[[], tuple[Any, ...]]
    page: str
    torch: Callable[..., torch.Tensor]


def uniform(low: float, high: float) -> float:
    return low + (high - low) * torch.rand((), dtype=torch.float64).item()


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64) * uniform(0.1, 5)


def one_of(*values: Any) -> Any:
    return values[int(torch.randint(len(values), ()))]


def token_weights(counts: list[int], by_tokens: bool) -> torch.Tensor:
    """What each token counts in a step, by autograd: the gradient at its loss."""
    losses = [torch.zeros(n, dtype=torch.float64, requires_grad=True) for n in counts]
    whole = sum(counts)
    share = [n / whole if by_tokens else 1 / len(counts) for n in counts]
    sum(part * each.mean() for part, each in zip(share, losses, strict=True)).backward()
    return torch.stack([each.grad[0] for each in losses])


def shared(ranks: int, blocks: int, width: int, tokens: int) -> torch.Tensor:
    """Bytes held, sent and of activations; in a ring each hands on an n-th, n - 1 times."""

    def sent(number: int, size: float) -> float:
        return number * (ranks - 1) * size / ranks

    attention, feed_forward = (4 * blocks * each * width**2 for each in (4, 8))
    weights, stream = attention + feed_forward, 4 * tokens * width
    cut = [(), ("moments",), ("moments", "gradients"), *[("moments", "gradients", "weights")] * 3]
    parts = {"weights": weights, "gradients": weights, "moments": 2 * weights}
    held = [
        sum(size / ranks if part in each else size for part, size in parts.items())
        for each in [*cut, (), ()]
    ]
    keys_and_values = 2 * stream * blocks
    bytes_sent = [
        *[sent(2, weights)] * 3,
        sent(3, weights),
        4 * blocks * sent(2, stream),
        2 * stream,
        sent(2, weights) + sent(3, keys_and_values),
        sent(2, attention) + 4 * blocks * sent(1, stream / ranks),
    ]
    by_norms, between = (4 * blocks * tokens / ranks * each * width for each in (4, 12))
    sequence = by_norms + between
    waiting = [*[sequence] * 4, by_norms + between / ranks, sequence, sequence / ranks, sequence]
    return torch.tensor(held + bytes_sent + waiting, dtype=torch.float64)


def paths_to_the_last(window: int, layers: int) -> torch.Tensor:
    """How many paths lead from each distance, by products of the mask."""
    tokens = layers * (window - 1) + 1
    mask = sliding_window_mask(tokens, window).double()
    return torch.linalg.matrix_power(mask, layers)[-1].flip(0)


def scores() -> tuple[Any, ...]:
    return normal(7) * one_of(1, 1000), one_of(1, 4, 64), uniform(0.01, 10)


def tokens() -> tuple[Any, ...]:
    x = normal(one_of(2, 5), one_of(2, 4, 7)) * one_of(1, 1e-3) + uniform(-3, 3)
    wrong = {name: one_of(True, False) for name in ("unbiased", "outside", "batch")}
    return x, 10 ** uniform(-8, 0), wrong


def _bytes_of_a_word(heads: int, features: int) -> int:
    return KeyValueCache(1, heads, 1, features, dtype=torch.bfloat16).nbytes


def layer_norm(x: torch.Tensor, eps: float, wrong: dict[str, bool]) -> torch.Tensor:
    """Our layer, and torch's variance where the layer is changed."""
    x = x.T if wrong["batch"] else x
    if wrong["unbiased"] or wrong["outside"]:
        x = x - x.mean(-1, keepdim=True)
        variance = x.var(-1, correction=int(wrong["unbiased"]), keepdim=True)
        divisor = variance.sqrt() + eps if wrong["outside"] else (variance + eps).sqrt()
        y = (x - x.mean(-1, keepdim=True)) / divisor
    else:
        y = LayerNorm(x.shape[-1], eps=eps).double()(x).detach()
    return y.T if wrong["batch"] else y


def sampling() -> tuple[Any, ...]:
    logits = normal(one_of(2, 9, 50))
    if one_of(True, False):
        logits = logits.round()  # tokens that are equally likely
    temperature = one_of(0.0, uniform(0.05, 3), 1.0)
    return (
        logits,
        temperature,
        one_of(None, 1, 3, 60),
        one_of(None, uniform(0.01, 0.99), 1.0, 1e-20),
    )


def token() -> tuple[Any, ...]:
    return normal(4) + uniform(-3, 3), one_of(0, 1, 2, 3), uniform(0.1, 3), one_of(1, 2, 6)


def placed(x: torch.Tensor, order: int, factor: float, times: int) -> torch.Tensor:
    """A token after sub-layers that multiply what they read."""
    norm = LayerNorm(4).double()
    for _ in range(times):
        x = [
            lambda x: norm(x + factor * x),
            lambda x: x + factor * norm(x),
            lambda x: x + norm(factor * x),
            lambda x: x + norm(factor * norm(x)),
        ][order](x)
    return x.detach()


def places() -> tuple[Any, ...]:
    return int(torch.randint(200, ())), int(torch.randint(200, ())), one_of(1, 2, 5, 64)


def common(a: int, b: int, width: int) -> torch.Tensor:
    table = sinusoidal_positions(200, width, dtype=torch.float64)
    return table[a] @ table[b, :, None]


def rotary_score(
    query: torch.Tensor, key: torch.Tensor, m: int, n: int, theta: float
) -> torch.Tensor:
    """Of the pair that has this frequency, by a head of two such pairs of which one is zeros."""
    rotary = RotaryPositions(4, base=1 / theta**2) if theta < 1 else RotaryPositions(2)
    place = 1 if theta < 1 else 0
    turned = []
    for pair, position in ((query, m), (key, n)):
        x = torch.zeros(1, rotary.d_k, dtype=torch.float64)
        x[0, place :: rotary.d_k // 2] = pair
        turned.append(rotary(x, torch.tensor([position]))[0])
    return (turned[0] @ turned[1])[None]


def unmet(distance: int, speed: float, trained: float, length: int) -> torch.Tensor:
    """1 where no angle of training, be they as near to each other as they may, is as large."""
    angles = torch.linspace(0, (length - 1) * trained, 100 * length, dtype=torch.float64)
    x, y = math.cos(distance * speed), math.sin(distance * speed)
    far = (angles.cos() - x).square() + (angles.sin() - y).square()
    return (far.min().sqrt() > 0.002).double()[None]


def slopes_of_activations(x: float) -> torch.Tensor:
    """The derivatives of no activation, ReLU, GELU in the tanh form and SiLU."""
    at = torch.tensor(x, dtype=torch.float64)
    activations = (lambda z: z, torch.relu, gelu_tanh, torch.nn.functional.silu)
    return torch.stack([torch.func.grad(each)(at) for each in activations])


def gated(gate: float, up: float) -> torch.Tensor:
    """One feature of the gated layer, with each activation."""
    found = []
    for activation in (lambda z: z, torch.relu, gelu_tanh, torch.nn.functional.silu):
        layer = GatedFeedForward(2, 1, activation).double()
        weights = ([[1.0, 0.0]], [[0.0, 1.0]], [[1.0], [0.0]])
        for parameter, values in zip(layer.parameters(), weights, strict=True):
            parameter.data = torch.tensor(values, dtype=torch.float64)
        found.append(layer(torch.tensor([gate, up], dtype=torch.float64))[0])
    return torch.stack(found).detach()


def regression() -> tuple[Any, ...]:
    x, t = normal(20, 6), normal(20)
    x = x / x.norm(dim=0)
    rate = 1 / torch.linalg.matrix_norm(x, 2).item() ** 2
    return x.T @ x, x.T @ t, 10 ** uniform(-1, 1), rate


def lasso(gram: torch.Tensor, products: torch.Tensor, strength: float, rate: float) -> torch.Tensor:
    w = torch.zeros_like(products)
    for _ in range(400):
        w = soft_threshold(w - rate * (gram @ w - products), rate * strength)
    return w


@cache
def tiny() -> GPT2:
    config = GPT2Config(vocab_size=3, n_positions=16, n_embd=2, n_layer=1, n_head=1)
    return GPT2(config).eval()


def counted(prompt: int, rounds: int, cached: bool) -> torch.Tensor:
    """How many positions the model computes in each round, counted as it writes."""
    counts: list[float] = []
    model, ids = tiny(), torch.zeros(1, prompt, dtype=torch.int64)
    hook = model.h[0].register_forward_pre_hook(
        lambda _, inputs: counts.append(float(inputs[0].shape[1]))
    )
    if cached:
        model.generate(ids, rounds)
    else:
        for _ in range(rounds):
            ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], dim=1)
    hook.remove()
    return torch.tensor(counts, dtype=torch.float64)


def rising() -> tuple[Any, ...]:
    noise = torch.rand(20, dtype=torch.float64)
    noise[0] = 0.0
    return noise * 3 ** normal(20), noise, uniform(1, 100)


def first_above(errors: torch.Tensor, noise: torch.Tensor, times: float) -> torch.Tensor:
    above = ((errors > times * noise) & (errors > 0)).double()
    return above.argmax() if above.any() else torch.tensor(-1)


def search(
    table: torch.Tensor, beams: int, most: int, alpha: float, paper: bool, exhaustive: bool
) -> torch.Tensor:
    """The quotient of the sentence that our search finds."""
    penalty = PaperLengthPenalty(alpha) if paper else PlainLengthPenalty(alpha)
    found = beam_search(
        lambda last: table.log()[last[:, 0]],
        lambda rows: None,  # the table knows the last word alone
        torch.tensor([0]),
        beams,
        most,
        end_token=1,
        padding_token=0,
        length_penalty=penalty,
        exhaustive=exhaustive,
    )[0].tolist()
    total = sum(table[a, b].log() for a, b in itertools.pairwise([0, *found]))
    return torch.stack([torch.as_tensor(total / penalty(len(found)))])


def keys_computed(source: int, words: int, cached: bool) -> torch.Tensor:
    """How many keys of the target and of the source a decoder layer computes for each word."""
    config = TransformerConfig(5, d_model=2, num_layers=1, num_heads=1, d_ff=1)
    model = Transformer(config).eval()
    counts: dict[str, int] = {}
    layer = model.decoder.layers[0]
    for name in ("self_attention", "cross_attention"):
        layer.get_submodule(f"{name}.key_proj").register_forward_pre_hook(
            lambda _, inputs, name=name: counts.update({name: inputs[0].shape[1]})
        )
    memory = model.encode(torch.zeros(1, source, dtype=torch.int64))
    caches = model.new_caches(1, words) if cached else None
    steps = []
    for n in range(1, words + 1):
        counts.clear()
        ids = torch.zeros(1, 1 if cached else n, dtype=torch.int64)
        model.decode(ids, memory, caches=caches)
        steps.append([counts["self_attention"], counts.get("cross_attention", 0)])
    return torch.tensor(steps, dtype=torch.float64)


def asked_for(tokens: int, right: int, padding: int, epsilon: float, reading: int) -> torch.Tensor:
    """What the loss asks for: what is left when its gradient is taken off the probabilities."""
    logits = normal(1, tokens).requires_grad_()
    name = ("all", "others", "others_but_padding")[reading]
    loss = smoothed_cross_entropy(logits, torch.tensor([right]), epsilon, name, padding)
    (slope,) = torch.autograd.grad(loss, logits)
    return (logits.softmax(-1) - slope).detach()[0]


def handed_over(weights: str, shapes: list[Any], sizes: dict[str, Any]) -> GPT2:
    """The model that a page was handed, in torch."""
    config = GPT2Config(
        vocab_size=sizes["vocabulary"],
        n_positions=sizes["positions"],
        n_embd=sizes["width"],
        n_layer=sizes["blocks"],
        n_head=sizes["heads"],
        layer_norm_epsilon=sizes["eps"],
    )
    numbers = torch.frombuffer(bytearray(b64decode(weights)), dtype=torch.float32)
    parts = numbers.split([math.prod(shape) for _, shape in shapes])
    model = GPT2(config).eval().requires_grad_(False)
    model.load_state_dict(
        {name: part.view(shape) for (name, shape), part in zip(shapes, parts, strict=True)}
    )
    return model


ALPHABET = " \t\n\u3000\u0085\ufeff\x1cabcé1²٣'.-�🗝ß中ﬁ"


@cache
def small_tokenizer() -> tuple[Tokenizer, list[str], list[list[str]]]:
    texts = ["the key's under the box, isn't it? 12 naïve 🗝🗝 keys  中文中文"] * 3
    vocabulary, merges = train(texts, 290)
    vocabulary["<|endoftext|>"] = len(vocabulary)
    return Tokenizer(vocabulary, merges), sorted(vocabulary, key=vocabulary.get), merges


def any_text() -> tuple[Any, ...]:
    _, vocabulary, merges = small_tokenizer()
    text = "".join(one_of(*ALPHABET, " the", " keys", "'s", "  ") for _ in range(12))
    return text, vocabulary, merges


COMPUTED = {
    "encode": Computed(
        any_text,
        "live.encode",
        lambda text, *_: small_tokenizer()[0].encode(text).double(),
    ),
    "cache": Computed(
        lambda: (one_of(*range(1, 9)), one_of(*range(1, 9)), one_of(True, False)),
        "live.positionsComputed",
        counted,
    ),
    "causal mask": Computed(
        lambda: (one_of(1, 2, 4), one_of(0, 1, 5)),
        "(seq, past) => live.causalMask(seq, past, true).map((row) => row.map(Number))",
        lambda seq, past: causal_mask(seq, past).double(),
    ),
    "batch norm": Computed(
        lambda: (normal(one_of(2, 4, 9)) + uniform(-3, 3),),
        "(values) => live.batchNorm(values)",
        lambda values: BatchNorm1d(1).double()(values[:, None]).detach()[:, 0],
    ),
    "keys of a decoder": Computed(
        lambda: (one_of(1, 4, 7), one_of(1, 2, 6), one_of(True, False)),
        "live.decoderKeys",
        keys_computed,
    ),
    "first rung": Computed(
        rising,
        "live.firstRungAbove",
        lambda *arguments: first_above(*arguments).double(),
    ),
    "norm placement": Computed(token, "live.placed", placed),
    "positions": Computed(
        places,
        "(a, b, width) => [live.dot(live.position(a, width), live.position(b, width))]",
        common,
    ),
    "angle that training did not show": Computed(
        lambda: (one_of(0, 5, 63, 64, 200), one_of(1.0, 0.3, 0.03), one_of(0.2, 0.03, 0.01), 64),
        "(...of) => [Number(live.unmetAngle(...of))]",
        unmet,
    ),
    "lasso": Computed(regression, "(g, c, s, rate) => live.lasso(g, c, s, rate, 400)", lasso),
    "ridge": Computed(
        regression,
        "(g, c, s) => live.ridge(g, c, s)",
        lambda gram, products, strength, _: torch.linalg.solve(
            gram + strength * torch.eye(6, dtype=torch.float64), products
        ),
    ),
    "temperature": Computed(
        scores,
        "(products, width, tau) => live.softmax(live.scores(products, width, tau))",
        lambda products, width, tau: (products / width**0.5 / tau).softmax(-1),
    ),
    "entropy": Computed(
        scores,
        "(products, width, tau) => [live.entropy(live.softmax(live.scores(products, width, tau)))]",
        lambda products, width, tau: torch.distributions.Categorical(
            logits=products / width**0.5 / tau
        ).entropy()[None],
    ),
    "layer norm": Computed(tokens, "live.layerNorm", layer_norm),
    "paths through windows": Computed(
        lambda: (one_of(1, 2, 4, 6), one_of(0, 1, 3, 5)),
        "live.paths",
        paths_to_the_last,
    ),
    "sampling": Computed(sampling, "live.nextTokenDistribution", next_token_distribution),
}


@pytest.fixture(scope="module")
def blank(browser):
    """An empty page that has all scripts of the figures."""
    context = browser.new_context()
    page = context.new_page()
    scripts = sorted(OWN.glob("*.js"), key=lambda file: (file.stem != "softmax", file))
    for script in [SHARED, *scripts]:
        page.add_script_tag(path=script)
    yield page
    context.close()


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.usefixtures("as_users_run_it")  # the layers' own tests check the shapes
def test_a_page_computes_what_torch_does(blank, name):
    torch.manual_seed(0)
    computed = COMPUTED[name]
    drawn = [computed.draw() for _ in range(INPUTS)]
    as_json = [
        [each.tolist() if isinstance(each, torch.Tensor) else each for each in arguments]
        for arguments in drawn
    ]
    found = blank.evaluate(
        "(drawn, live = VerifiedBook.interactive) => "
        f"drawn.map((each) => ({computed.page})(...each))",
        as_json,
    )
    for ours, arguments in zip(found, drawn, strict=True):
        ours = torch.tensor(ours, dtype=torch.float64)
        torch.testing.assert_close(ours, computed.torch(*arguments), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("script", [SHARED, *sorted(OWN.glob("*.js"))], ids=lambda file: file.stem)
def test_scripts_are_plain(script):
    """For browsers of any age: no syntax of ES2015, and nothing but the shared script."""
    text = script.read_text(encoding="utf-8")
    code = re.sub(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', "", text)
    assert not re.findall(r"=>|`|\b(?:let|const|class|import|export|async|await)\b|\.\.\.", code)
    assert '"use strict"' in text


@pytest.fixture(scope="module", params=PAGES)
def name(request):
    return request.param


@contextmanager
def figure_of(browser, html, name):
    """The page of a figure, opened from its file and started, with what its console says."""
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    said = Visit()
    watch(page, said, "file:")
    page.goto((html / PAGES[name]).as_uri())
    figure = page.locator(f'.live-figure[data-live="{name}"]')
    if figure.locator(".live-offer").count():
        figure.locator(".live-offer button").press("Enter")
        figure.locator(".live-moving").wait_for()
    yield figure
    context.close()
    assert said.messages == []
    assert said.refused == []


@dataclass
class Start:
    """What a figure was handed, and the numbers that it shows before it is moved."""

    data: Any
    shown: list[float]

    @classmethod
    def of(cls, figure):
        data = figure.locator("script").evaluate(
            "script => script.textContent ? JSON.parse(script.textContent) : VerifiedBook.arrived"
        )
        read = figure.locator(":is(td.live-number, td.live-shade)").all_inner_texts()
        none, minus = "\N{EN DASH}", "\N{MINUS SIGN}"
        return cls(
            data, [0.0 if each == none else float(each.replace(minus, "-")) for each in read]
        )


@pytest.fixture(scope="module")
def opened(browser, html, name):
    """A figure, opened once for all tests, which may move it, and how it started."""
    with figure_of(browser, html, name) as figure:
        yield figure, Start.of(figure)


def picture(figure):
    """What a reader sees of it, and hears."""
    return figure.evaluate(
        """figure => [
          ...[...figure.querySelectorAll(".live-stage input")].map((input) => input.value),
          figure.querySelector(".live-stage").outerHTML,
          figure.querySelector(".live-says").textContent,
        ]"""
    )


# What is cut at the side of a figure.
OUTSIDE = """figure => {
  const frame = figure.querySelector(".live-moving").getBoundingClientRect();
  return [...figure.querySelectorAll(".live-moving :not(option)")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.right > frame.right + 1 || box.left < frame.left - 1
      || (e.matches("button, td, th") && e.scrollWidth > e.clientWidth + 1);
  }).map((e) => e.outerHTML);
}"""
NAME = "e => e.getAttribute('aria-label') || e.textContent || e.labels[0].textContent"


def test_every_control_has_a_name_and_changes_the_picture_by_keyboard_alone(opened):
    opened, _ = opened
    assert opened.get_by_role("status").inner_text().endswith(".")
    resize(opened.page, NARROW)
    assert opened.evaluate(OUTSIDE) == []
    resize(opened.page, DESKTOP)
    controls = opened.locator(".live-moving :is(input, select, button)")
    keys = {"range": ("Home", "End"), "checkbox": ("Space",), "number": ("ArrowUp",)}
    keys |= {"select-one": ("ArrowUp", "ArrowDown"), "button": ("Enter",), "text": ("x",)}
    there = range(controls.count())
    assert all(controls.nth(i).evaluate(NAME).strip() for i in there)
    moved, now = set(), picture(opened)
    for i in itertools.chain(there, reversed(there)):
        if moved == set(there):  # else back: a button that leads to the start changes nothing there
            break
        control = controls.nth(i)
        for key in keys[control.evaluate("control => control.type")]:
            before = now
            control.press(key)
            now = picture(opened)
            if now != before:
                moved.add(i)
    assert moved == set(there)
    assert moved


@pytest.mark.parametrize("name", ["layer_norm", "gpt2"], indirect=True)  # waits for a click
def test_the_still_picture_is_there_without_scripts_and_on_paper(browser, html, opened, name):
    opened, _ = opened
    still, moving = opened.locator(".live-still svg"), opened.locator(".live-moving")
    assert not still.is_visible()
    assert moving.is_visible()
    opened.page.emulate_media(media="print")
    assert still.is_visible()
    assert not moving.is_visible()
    opened.page.emulate_media(media="screen")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((html / PAGES[name]).as_uri())
    assert page.locator(f'[data-live="{name}"] .live-still svg').is_visible()
    assert page.locator(".live-moving").count() == 0
    context.close()


def test_the_start_is_what_the_layers_give(opened, name):
    """To the decimals that are shown: what the page was handed, in our layers."""
    data, shown = opened[1].data, opened[1].shown
    if name == "layer_norm":
        x = torch.tensor(data["tokens"], dtype=torch.float64)
        expected = torch.nn.functional.layer_norm(x, x.shape[-1:])[0]
    elif name == "sampling":
        p = next_token_distribution(torch.tensor(data["logits"], dtype=torch.float64), 1.0)
        best = p[data["best"]]
        expected = torch.cat([best, 1 - best.sum(0, keepdim=True)])
    elif name == "ranks":
        sizes = (data[each] for each in ("ranks", "blocks", "width", "tokens"))
        state, sent, waiting = shared(*sizes).chunk(3)
        expected = torch.cat([state + waiting, sent]) / 1e9
    elif name == "accumulation":
        counts = [data["first"], data["second"]]
        whole = token_weights(counts, by_tokens=True)[:1]
        expected = torch.cat([token_weights(counts, by_tokens=False), whole])
    elif name == "shared_keys":
        kept = [_bytes_of_a_word(heads, data["features"]) for heads in (data["heads"], 8)]
        caches = torch.tensor(kept).double() * data["layers"] * 16 * 8192 / 1e9
        weights = torch.tensor([data["weights"]["8"]]).double()
        expected = torch.cat([weights, caches])
    elif name == "masks":
        scores = torch.tensor(data["products"], dtype=torch.float64) / data["width"] ** 0.5
        hidden = ~torch.tensor(data["mask"])
        expected = scores.masked_fill(hidden, -torch.inf).softmax(-1).flatten()
    elif name == "attention_heads":
        rows = torch.tensor([head["products"][-1] for head in data["heads"]], dtype=torch.float64)
        expected = (rows / data["width"] ** 0.5).softmax(-1).flatten()
    elif name == "forward":
        with kept_by_the_book():
            running = trained_model().double()
        ids = encode("the cat near the dogs here")
        block, stream = running.h[0], running.wte(ids) + running.wpe(torch.arange(6))
        query, key, _ = block.attn.c_attn(block.ln_1(stream)).chunk(3, dim=-1)
        weights = attention_weights(query, key)[-1]
        after = [stream, stream + block.attn(block.ln_1(stream)), block(stream)]
        scores = [(running.ln_f(x[-1]) @ running.wte.weight.T)[encode("is are")] for x in after]
        expected = torch.cat([weights, torch.stack([a - b for a, b in scores])]).detach()
    elif name == "heads_out":
        first = data["sentences"][0]
        rows = torch.tensor(first["products"], dtype=torch.float64) / data["width"] ** 0.5
        both = torch.tensor(first["shares"][-1], dtype=torch.float64)
        expected = torch.cat([rows.softmax(-1).flatten(), both])
    elif name == "lookup":
        scores = trained()[0](encode(data["question"])[None])[0, -1]
        expected = scores.softmax(-1)[encode(" ".join(data["colors"]))].detach()
    elif name == "gpt2":
        logits = model_of(data)(tokenizer_of(data).encode(data["prompt"]))
        expected = logits[-1].softmax(-1).topk(len(shown)).values.double()
    elif name == "dropout":
        x, draws = (torch.tensor(data[key], dtype=torch.float64) for key in ("x", "draws"))
        expected = torch.where(draws >= 0.25, x / 0.75, 0.0)
    elif name == "activations":
        x = torch.tensor(data["x"], dtype=torch.float64)
        gelu = torch.nn.functional.gelu(x, approximate="tanh")
        bends = torch.stack([x, x.relu(), gelu, torch.nn.functional.silu(x)])
        expected = torch.cat([bends, slopes_of_activations(data["x"])])
    elif name == "rotary":
        query, key = (torch.tensor(data[each], dtype=torch.float64) for each in ("query", "key"))
        scores = [rotary_score(query, key, data["m"], data["n"], each) for each in data["speeds"]]
        expected = torch.cat(scores)
    elif name == "adapter":
        expected = torch.tensor(data["plural"][-1], dtype=torch.float64)
    elif name == "gates":
        expected = gated(data["gate"], data["up"])
    elif name == "hidden_features":
        sentence = len(data["nouns"]) - 1  # the first noun, the first word between, the last noun
        lead = torch.tensor([data["lead"][sentence]], dtype=torch.float64)
        opened, says = (torch.tensor(data[each][sentence]).double() for each in ("opened", "says"))
        adds = opened * says
        expected = torch.cat([opened, adds, lead - adds.sum()])
    elif name == "encoder_layer":
        expected = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)
        end = torch.tensor(data["stages"][-1][0], dtype=torch.float64)
        by_hand = torch.tensor([5.0, -3.0, -2.0], dtype=torch.float64) / (38 / 3) ** 0.5
        torch.testing.assert_close(end, by_hand, rtol=0, atol=0.005)
    elif name == "norm_placement":
        x = torch.tensor(data["x"], dtype=torch.float64)
        expected = torch.cat([x, torch.nn.functional.layer_norm(3 * x, x.shape)])
    elif name == "alignment":
        expected = torch.tensor(data["weights"], dtype=torch.float64).mean(0)[data["start"]]
    elif name == "label_smoothing":
        expected = asked_for(len(data["tokens"]), data["right"], data["padding"], 0.1, 0)
    elif name == "beam_search":
        rows = torch.tensor(data["tables"][0]["rows"], dtype=torch.float64)
        rows[1, 1] = 1.0  # behind the end, where no beam goes on
        best = search(rows, 3, data["most"], 0.6, paper=False, exhaustive=True)
        found = torch.tensor(shown, dtype=torch.float64)
        assert (found[:2].diff() < 0).all()
        torch.testing.assert_close(found[:1], best, rtol=0, atol=0.005 + 1e-9)
        return
    elif name == "penalties":
        gram, products = (
            torch.tensor(data[key], dtype=torch.float64) for key in ("gram", "products")
        )
        expected = lasso(gram, products, 1.0, data["rate"])
    else:
        pytest.skip("shows no numbers but in its text")
    found = torch.tensor(shown, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=0.005 + 1e-9)


def tokenizer_of(data: dict[str, Any]) -> Tokenizer:
    vocabulary = {token: i for i, token in enumerate(data["vocabulary"])}
    return Tokenizer(vocabulary, [tuple(pair) for pair in data["merges"]])


def model_of(data: dict[str, Any]) -> GPT2:
    return handed_over(data["weights"], data["shapes"], data["sizes"])


def test_only_pages_with_a_figure_load_its_scripts(texts):
    shown = {}
    for page in [page for page, text in texts.items() if "interactive" in text]:
        soup = BeautifulSoup(texts[page], "html.parser")
        names = {figure["data-live"] for figure in soup.select(".live-figure")}
        sources = [script["src"].partition("?")[0] for script in soup.select("script[src]")]
        loaded = {Path(source).stem for source in sources if "interactive" in source}
        needed = names | {SHARED.stem} if names else set()
        assert needed <= loaded, page
        parts = {"softmax", "byte_pairs", "ladder"} if names else set()  # of other figures' scripts
        assert loaded - needed <= parts, page
        shown |= dict.fromkeys(names, page)
    assert shown == PAGES
