"""The checks of `GPT2`, against `torch.nn`."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from layer_checks.checks.gpt2_block import LAYOUT, TorchGPT2Block, as_at_the_start
from layer_checks.evidence.evidence import Evidence, equivalent, holds, raises
from layer_checks.evidence.randomness import seeded
from layer_checks.kit.arguments import CannotTakeError
from layer_checks.kit.candidates import (
    built,
    load,
    outputs_and_gradients,
    randomized,
    same,
    weights_of,
)
from layer_checks.kit.definitions import Candidate, Layer
from layer_checks.kit.dropping import elements_dropped, one_of
from layer_checks.kit.oracles import (
    agreeing_gradients,
    held_to_what_it_reads,
    same_state,
    set_eps,
    with_weights_of,
)
from layer_checks.kit.own_calls import in_own_steps, padded, under_padding
from layer_checks.kit.probes import DROPPED, Probing, Stepping, probe
from layer_checks.kit.stages import equal_in_steps
from layer_checks.kit.weight_maps import WeightMap, Weights, renamed, split_off
from layer_checks.kit.writing import (
    Writing,
    continued,
    drawn_from_generator,
    drawn_from_nucleus,
    drawn_from_ties,
    drawn_near_temperature_zero,
    drawn_to_the_boundary,
    fix_logits,
    rows_ending_apart,
    told_by_writing,
    with_an_end,
    written,
    written_past,
)
from transformer_layers import GPT2Config, KeyValueCache
from transformer_layers.models.gpt2.checkpoint import HEAD, PREFIX, weight_shapes

_VOCAB_SIZE, _N_POSITIONS, _N_EMBD, _N_LAYER, _N_HEAD = 11, 8, 6, 2, 3


class TorchGPT2(Writing):
    """torch's embeddings, norms, linear layers and attention kernel."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        sizes = config.n_embd, config.n_head, config.layer_norm_epsilon
        self.wte = nn.Embedding(config.vocab_size, config.n_embd, dtype=torch.float64)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd, dtype=torch.float64)
        self.h = nn.Sequential(*(TorchGPT2Block(*sizes) for _ in range(config.n_layer)))
        self.ln_f = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon, dtype=torch.float64)

    def forward(self, ids: Tensor, past: int = 0) -> Tensor:
        """The logits of what follows each position, where as many positions are before them."""
        x = self.wte(ids) + self.wpe.weight[past : past + ids.shape[-1]]
        return functional.linear(self.ln_f(self.h(x)), self.wte.weight)

    def loss(self, ids: Tensor) -> Tensor:
        """The cross-entropy of each next token."""
        logits = self(ids)[..., :-1, :]
        return functional.cross_entropy(logits.flatten(0, -2), ids[..., 1:].flatten())

    @torch.no_grad()
    def vary(self) -> None:
        """Small embeddings, the smaller of positions, and a last norm that changes little."""
        randomized(self, std=2.0)
        self.wte.weight.normal_(std=0.3)
        self.wpe.weight.normal_(std=0.2)
        self.ln_f.weight.fill_(1.0)
        self.ln_f.bias.zero_()

    @torch.no_grad()
    def fix_logits(self, logits: Tensor) -> None:
        """The last norm gives its bias, which picks one column of the embedding."""
        self.ln_f.weight.zero_()
        self.ln_f.bias.copy_(torch.arange(len(self.ln_f.bias)) == 0)
        self.wte.weight[:, 0] = logits


def _names(weights: Weights) -> tuple[str, ...]:
    """The published names of a model of as many blocks as these weights have."""
    blocks = len({name.split(".")[1] for name in weights if name.startswith("h.")})
    config = GPT2Config(n_layer=max(blocks, 1))
    return tuple(name for name, _ in weight_shapes(config))


def _kept(weights: Weights) -> dict[str, Tensor]:
    return renamed({name: name for name in _names(weights)}, weights)


def _with_head(weights: Weights) -> dict[str, Tensor]:
    kept = _kept(weights)
    return {PREFIX + name: weight for name, weight in kept.items()} | {HEAD: kept["wte.weight"]}


def _without_head(weights: Weights) -> dict[str, Tensor]:
    names = _names(split_off(PREFIX, weights)[0])
    rest = {name: weight for name, weight in weights.items() if name != HEAD}
    kept = renamed({PREFIX + name: name for name in names}, rest)
    head = weights.get(HEAD)
    if head is not None and not torch.equal(head, kept["wte.weight"]):
        raise ValueError("lm_head.weight differs from wte.weight: our head is the token embedding")
    return kept


def _config(dropout: float = 0.0) -> GPT2Config:
    return GPT2Config(
        _VOCAB_SIZE, _N_POSITIONS, _N_EMBD, _N_LAYER, _N_HEAD, dropout, layer_norm_epsilon=1e-3
    )


@cache  # a module takes as long to build as to run
def _oracle() -> TorchGPT2:
    with seeded(0):  # leaves the caller's draws as they are
        return TorchGPT2(_config())


def _pair(candidate: Candidate, dropout: float = 0.0) -> tuple[Any, TorchGPT2]:
    theirs, config = randomized(_oracle()), _config(dropout)
    set_eps(theirs, config.layer_norm_epsilon)  # the oracle is that of another candidate, too
    ours = with_weights_of(theirs, candidate, config)
    with seeded(0):
        held_to_what_it_reads(ours, theirs, _ids(1, 4))
    return ours, theirs


def _writing(candidate: Candidate, dropout: float = 0.0) -> tuple[Any, Tensor, int]:
    """A model, prompts of which it ends some before others, and the token that ends them."""
    theirs = _oracle()
    ids, eos_token = rows_ending_apart(theirs)
    return with_weights_of(theirs, candidate, _config(dropout)), ids, eos_token


def _ids(batch: int = 2, seq: int = 5) -> Tensor:
    return torch.randint(_VOCAB_SIZE, (batch, seq))


def _caches(seq: int = _N_POSITIONS, blocks: int = _N_LAYER) -> list[KeyValueCache]:
    d_k = _N_EMBD // _N_HEAD
    return [KeyValueCache(2, _N_HEAD, seq, d_k, dtype=torch.float64) for _ in range(blocks)]


def _pair_of_one_block(candidate: Candidate, positions: int) -> tuple[Any, TorchGPT2]:
    """For more positions than the others."""
    config = GPT2Config(_VOCAB_SIZE, positions, _N_EMBD, 1, _N_HEAD, dropout=0.0)
    theirs = randomized(TorchGPT2(config))
    return with_weights_of(theirs, candidate, config), theirs


def _stepping(candidate: Candidate, seq: int) -> Stepping:
    ours, theirs = _pair_of_one_block(candidate, seq)
    return Stepping(
        step=lambda part, cache: ours(part, caches=cache),
        whole=theirs,
        cache=lambda seq: _caches(seq, blocks=1),
        inputs=lambda seq: _ids(seq=seq),
    )


def _example(candidate: Candidate) -> object:
    return built(candidate, _config())(_ids())


def _probe(candidate: Candidate) -> Iterator[Tensor]:
    ours, theirs = _pair(candidate)
    ids = _ids()
    yield torch.tensor(len(ours.state_dict()))
    yield from outputs_and_gradients(ours, weights_of(theirs), ids)
    yield from padded(ours, ids)
    yield ours.loss(ids).detach()
    caches = _caches()
    for part in ids.split([3, 2], dim=1):
        yield ours(part, caches=caches).detach()
    yield from told_by_writing(*_pair(candidate, dropout=0.5))


def _refuses(candidate: Candidate, batches: Sequence[Tensor], what: str) -> Evidence:
    model = built(candidate, _config())
    for ids in batches:
        raises((ValueError, IndexError), model, ids)
    return holds(True, f"{what} raises an error")


def _initial(candidate: Candidate) -> dict[str, Tensor]:
    """Weights as they start in a model that has enough of them to tell a deviation."""
    config = GPT2Config(vocab_size=90, n_positions=50, n_embd=24, n_layer=2, n_head=2)
    return weights_of(built(candidate, config))


def _deviations(candidate: Candidate, std: float, belongs: Callable[[str], bool]) -> Evidence:
    stds = {
        name: float(each.std())
        for name, each in _initial(candidate).items()
        if name.endswith("weight") and belongs(name)
    }
    # The fewest numbers are 576: a deviation that is off by six standard errors.
    wrong = [f"{name} {found:.2g}" for name, found in stds.items() if abs(found / std - 1) > 0.18]
    if wrong or not stds:
        raise AssertionError(f"not equal: {', '.join(wrong) or 'no weights'} against {std:.2g}")
    return holds(True, f"{len(stds)} matrices of standard deviation {std:.2g}")


gpt2 = Layer(
    "GPT2",
    "GPT2(config)(ids), with .loss(ids)",
    example=_example,
    probe=_probe,
    not_mistakes={"always float32"},  # "logits in float32" is the same
    leading=None,  # its inputs are tokens
    by_name={"caches"},  # others' are of other classes
    layout=replace(LAYOUT, shared=frozenset({"wte.weight"})),
    weight_maps={
        "transformers.GPT2Model": WeightMap(_kept, _kept),
        "transformers.GPT2LMHeadModel": WeightMap(_with_head, _without_head),
    },
)


@gpt2.check("The logits have the shape of the ids and an axis for the vocabulary.", weak=True)
def output_shape(candidate: Candidate) -> Evidence:
    ids = _ids()
    return same(tuple(built(candidate, _config())(ids).shape), (*ids.shape, _VOCAB_SIZE))


@gpt2.check("There are as many parameters as the sizes ask for.", weak=True)
def number_of_parameters(candidate: Candidate) -> Evidence:
    count = sum(each.numel() for each in built(candidate, _config()).parameters())
    block = 12 * _N_EMBD**2 + 13 * _N_EMBD
    return same(count, (_VOCAB_SIZE + _N_POSITIONS) * _N_EMBD + _N_LAYER * block + 2 * _N_EMBD)


@gpt2.check("The first loss is ln V, up to 0.1.", weak=True)
def first_loss(candidate: Candidate) -> Evidence:
    model: Any = built(candidate, _config()).eval()
    return equivalent(model.loss(_ids()), math.log(_VOCAB_SIZE), atol=0.1)


@gpt2.check("Five steps of training make the loss smaller.", weak=True)
def training(candidate: Candidate) -> Evidence:
    model: Any = built(candidate, _config())
    ids = _ids()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        losses.append(model.loss(ids))
        losses[-1].backward()
        optimizer.step()
    return holds(losses[-1] < losses[0], "the loss is smaller after five steps")


@gpt2.check(
    "With weights of standard deviation 0.02 the logits are torch's, up to 0.01.",
    name="initial weights, atol 1e-2",
    weak=True,
)
def at_the_start(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    as_at_the_start(theirs)
    load(ours, weights_of(theirs))
    ids = _ids()
    return equivalent(ours(ids), theirs(ids), atol=1e-2)


@gpt2.check("The state dict has the names and shapes of the published weights.", kind="contract")
def state(candidate: Candidate) -> Evidence:
    return same_state(built(candidate, _config()), _oracle())


@gpt2.check("With weights of standard deviation 0.2 the logits in float64 are torch's.")
def values(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids()
    return equivalent(ours(ids), theirs(ids), atol=1e-12)


@gpt2.check("So are the gradients of all weights.")
def gradients(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return agreeing_gradients(ours, theirs, _ids())


@gpt2.check("The loss is that of each next token.")
def loss(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids()
    return equivalent(ours.loss(ids), theirs.loss(ids), atol=1e-12)


@gpt2.check("With bfloat16 weights the loss is summed up in float32.")
def loss_in_bfloat16(candidate: Candidate) -> Evidence:
    model: Any = built(candidate, _config()).bfloat16()
    ids = _ids()
    logits = model(ids[..., :-1]).float().flatten(0, -2)
    expected = functional.cross_entropy(logits, ids[..., 1:].flatten())
    return equivalent(model.loss(ids), expected, rtol=1e-6)


@gpt2.check("Changing tokens 4 and 5 of 6 does not move the logits at 0 to 3.")
def future(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    ids = _ids(seq=6)
    changed = ids.clone()
    changed[:, 4:] = (ids[:, 4:] + 3) % _VOCAB_SIZE
    return equivalent(ours(changed)[:, :4], ours(ids)[:, :4], atol=1e-13)


@gpt2.check(
    "In steps of 3, 2 and 1 with caches of keys and values, the logits are the same.",
    kind="contract",
)
def caches(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids(seq=6)
    if (own := in_own_steps(ours, ids, "caches", atol=1e-12)) is not None:
        return own
    caches, sizes = _caches(), (3, 2, 1)
    steps = torch.cat([ours(part, caches=caches) for part in ids.split(sizes, dim=1)], dim=1)
    return equal_in_steps(steps, theirs(ids), sizes, atol=1e-12)


@gpt2.check(
    "A mask that hides nothing changes nothing; where it hides two tokens at an end of a text, the "
    "logits of the others are those of that text alone.",
    kind="contract",
)
def padding(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    return under_padding(ours, _ids(), 1e-12, by_place=theirs)


@gpt2.check(
    "generate adds the tokens of the highest logits, one by one, in training too, where nothing "
    "is dropped meanwhile; so does stream.",
    kind="contract",
)
def greedy_tokens(candidate: Candidate) -> Evidence:
    ours, ids, _ = _writing(candidate, dropout=0.5)
    expected = continued(ours, ids)
    return equivalent(written(ours.train(), ids), expected)


@gpt2.check(
    "A row that has written eos_token is filled up with it while others go on, until all have "
    "ended.",
    kind="contract",
)
def rows_that_end(candidate: Candidate) -> Evidence:
    ours, ids, eos_token = _writing(candidate)
    expected = continued(ours, ids, eos_token)
    equivalent(written(ours, ids, eos_token=eos_token), expected)
    ending = (expected[:, :-1] == eos_token).any(dim=1)
    expected = continued(ours, ids[ending], eos_token)
    return equivalent(written(ours, ids[ending], eos_token=eos_token), expected)


@gpt2.check(
    "Where all positions are used up, generate refuses, stops, or goes on from the last tokens.",
    kind="contract",
)
def past_the_positions(candidate: Candidate) -> Evidence:
    ours, _ = _pair(candidate)
    return written_past(ours, _ids(seq=6), _N_POSITIONS)


@gpt2.check("A prompt that holds eos_token is continued as any other.", kind="contract")
def end_in_a_prompt(candidate: Candidate) -> Evidence:
    ours, ids, eos_token = _writing(candidate)
    ids = with_an_end(ids, eos_token)
    expected = continued(ours, ids, eos_token)
    return equivalent(written(ours, ids, eos_token=eos_token), expected)


@gpt2.check(
    "With top_p = 0.75 at temperature 2, tokens are drawn from the fewest that have 0.75 after "
    "the division by 2.",
    kind="contract",
)
def nucleus(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    fix_logits(ours, theirs)
    return drawn_from_nucleus(ours, top_p=0.75)


@gpt2.check(
    "With top_k = 4, too, they are drawn from the fewest that have 0.75 of what these four have.",
    kind="contract",
)
def nucleus_of_four(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    fix_logits(ours, theirs)
    return drawn_from_nucleus(ours, top_p=0.75, top_k=4)


@gpt2.check(
    "With top_k = 2 and two tokens that are both the second, any of the three is drawn.",
    kind="contract",
)
def ties_of_top_k(candidate: Candidate) -> Evidence:
    return drawn_from_ties(*_pair(candidate))


@gpt2.check(
    "With top_p = 0.5, two of four equally likely tokens are drawn: where the sum is reached, no "
    "more is needed.",
    kind="contract",
)
def boundary_of_top_p(candidate: Candidate) -> Evidence:
    return drawn_to_the_boundary(*_pair(candidate))


@gpt2.check(
    "At temperatures of 1e-6 and of 1e-39 the most likely token is drawn, as at 0.",
    kind="contract",
)
def temperature_near_zero(candidate: Candidate) -> Evidence:
    return drawn_near_temperature_zero(*_pair(candidate))


@gpt2.check(
    "With generator= equal seeds draw equal tokens, and other seeds other ones, whatever the state "
    "of torch's global generator, which stays as it is.",
    kind="contract",
)
def draws_of_a_generator(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    fix_logits(ours, theirs)
    return drawn_from_generator(ours)


@gpt2.check(
    "generate and stream leave the mode of each part as it was, and gradients switched on; so does "
    "a stream that is broken off.",
    kind="contract",
)
def modes_after_writing(candidate: Candidate) -> Evidence:
    ours, ids, _ = _writing(candidate)
    parts = list(ours.modules())
    for training in (True, False):
        ours.train(training)
        parts[-1].train(not training)
        before = [part.training for part in parts]
        written(ours, ids[:2], max_new_tokens=2)
        same([part.training for part in parts], before)
        if hasattr(ours, "stream"):
            steps = iter(ours.stream(ids[:2], max_new_tokens=2))
            next(steps)
            same([part.training for part in parts], before)
            holds(torch.is_grad_enabled(), "gradients are on between the steps of a stream")
            del steps
    return holds(True, "each part has the mode that it had")


@gpt2.check("Two streams in turn write what each writes by itself.", kind="contract")
def streams_in_turn(candidate: Candidate) -> Evidence:
    ours, ids, _ = _writing(candidate)
    halves = ids.chunk(2)
    expected = [written(ours, half, max_new_tokens=3)[:, -3:] for half in halves]
    if not hasattr(ours, "stream"):
        raise CannotTakeError("it has no stream")
    streams = [ours.stream(half, max_new_tokens=3) for half in halves]
    steps = list(zip(*streams, strict=True))
    for tokens, each in zip(zip(*steps, strict=True), expected, strict=True):
        evidence = equivalent(torch.stack(tokens, dim=1), each)
    return evidence


@gpt2.check("In evaluation nothing is dropped.")
def evaluation(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate, dropout=0.5)
    ids = _ids()
    return equivalent(ours.eval()(ids), theirs(ids), atol=1e-12)


@gpt2.check(
    "In training with dropout 1 the logits come from the last norm's bias alone.", kind="contract"
)
def all_dropped(candidate: Candidate) -> Evidence:
    # Zeros pass through the residuals; the last norm makes its bias of them.
    ours, theirs = _pair(candidate, dropout=1.0)
    ids = _ids()
    expected = functional.linear(theirs.ln_f.bias, theirs.wte.weight)
    return equivalent(ours.train()(ids), expected.expand(*ids.shape, -1), atol=1e-12)


@gpt2.check("More positions than n_positions are refused.", kind="contract")
def too_long(candidate: Candidate) -> Evidence:
    return _refuses(candidate, [_ids(seq=_N_POSITIONS + 1)], "n_positions + 1 positions")


@gpt2.check("An id that is not in the vocabulary is refused.", kind="contract")
def unknown_ids(candidate: Candidate) -> Evidence:
    batches = [torch.tensor([[0, wrong]]) for wrong in (_VOCAB_SIZE, -1)]
    return _refuses(candidate, batches, f"{_VOCAB_SIZE} or -1 among the ids")


@gpt2.check("A sequence without a batch axis gives its own row.", kind="contract")
def one_sequence(candidate: Candidate) -> Evidence:
    ours, theirs = _pair(candidate)
    ids = _ids()
    return equivalent(ours(ids[0]), theirs(ids)[0], atol=1e-12)


@gpt2.check("Both start with standard deviation 0.02.", kind="start")
def initial_embeddings(candidate: Candidate) -> Evidence:
    return _deviations(candidate, 0.02, lambda name: name in ("wte.weight", "wpe.weight"))


@gpt2.check("Every c_proj starts with standard deviation 0.02 / √(2N).", kind="start")
def initial_projections(candidate: Candidate) -> Evidence:
    return _deviations(candidate, 0.02 / math.sqrt(4), lambda name: "c_proj" in name)


@gpt2.check("No two blocks start with the same matrices.", kind="start")
def blocks_differ(candidate: Candidate) -> Evidence:
    initial = _initial(candidate)
    matrices = [name for name, each in initial.items() if name[:4] == "h.0." and each.ndim == 2]
    alike = [name for name in matrices if torch.equal(initial[name], initial[f"h.1.{name[4:]}"])]
    if alike or not matrices:
        raise AssertionError(f"not different in h.0 and h.1: {alike or 'no matrices'}")
    return holds(True, f"{len(matrices)} matrices differ between h.0 and h.1")


@gpt2.check(
    "In training the sum of the embeddings is dropped once, and divided by 1 - p.", kind="contract"
)
def dropped_embeddings(candidate: Candidate) -> Evidence:
    theirs = randomized(_oracle())
    with torch.no_grad():  # the blocks give zeros
        for name, each in theirs.named_parameters():
            if "c_proj" in name:
                each.zero_()
    ours = with_weights_of(theirs, candidate, _config(dropout=0.25))
    ids = _ids(batch=40)
    embedded = theirs.wte(ids) + theirs.wpe.weight[: ids.shape[-1]]
    possible, dropped = elements_dropped(embedded, p=0.25)
    logits = functional.linear(theirs.ln_f(possible), theirs.wte.weight)
    return one_of(ours.train()(ids), logits, dropped, p=0.25)


@gpt2.check("Gains start from ones, biases from zeros.", kind="start")
def initial_gains_and_biases(candidate: Candidate) -> Evidence:
    initial = _initial(candidate)
    biases = [name for name in initial if name.endswith("bias")]
    gains = [name for name in initial if name.endswith("weight") and initial[name].ndim == 1]
    wrong = [name for name in biases if bool(initial[name].any())]
    wrong += [name for name in gains if bool((initial[name] != 1).any())]
    if wrong or not gains:
        raise AssertionError(f"not equal: {', '.join(wrong) or 'no gains'} against 1 and 0")
    return holds(True, f"{len(gains)} gains of ones, {len(biases)} biases of zeros")


def _drawn(candidate: Candidate) -> list[Tensor]:
    model = built(candidate, _config(dropout=0.5))
    return [*weights_of(model).values(), model(_ids())]


probe(
    gpt2,
    Probing(
        pair=_pair,
        inputs=lambda batch, seq: (_ids(batch, seq),),
        sizes=(_config(),),
        large=lambda candidate, seq: [(*_pair_of_one_block(candidate, seq), (_ids(1, seq),))],
        drawn=_drawn,
        dropping=lambda candidate: (_pair(candidate, DROPPED)[0], (_ids(),)),
        stepping=_stepping,
        makes=lambda candidate: (built(candidate, _config()), (_ids(),)),
        scales=(),
    ),
)
