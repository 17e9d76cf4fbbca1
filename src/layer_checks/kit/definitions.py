"""What the package knows about a layer: its checks and its known wrong versions."""

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from torch import Tensor, nn

import transformer_layers
from layer_checks.evidence.evidence import Evidence
from layer_checks.kit.weight_maps import WeightMap

# A class of layers, or a function: what a reader hands in.
Candidate: TypeAlias = Callable[..., Any]

# What a check is about: what the layer computes, values and gradients; how it is called, what it
# refuses and how exact it is in which dtype (arguments, names, masks, caches, half precisions); its
# initial values and defaults. What differs in names alone is found out, and no check's own kind.
Kind: TypeAlias = Literal["law", "contract", "start", "names"]

Declared = TypeVar("Declared", bound=Callable[..., Any])
View = TypeVar("View")
Known = TypeVar("Known", "Check", "WrongVersion")


@dataclass(frozen=True)
class Check:
    """One statement about a layer, and the code that settles it.

    Attributes:
        name: A few words, as they stand in a report.
        law: The statement in one sentence.
        run: Builds the candidate and returns evidence; raises `AssertionError` where the statement
            fails. Draws from torch's global generator, which the caller seeds.
        weak: Whether it is a popular check that lets most wrong versions pass: such a check stands
            in the table of what catches what, and decides nothing.
        kind: What it is about.
        generic: Whether it is one of the probes that all layers are asked alike.
    """

    name: str
    law: str
    run: Callable[[Candidate], Evidence]
    weak: bool = False
    kind: Kind = "law"
    generic: bool = False


@dataclass(frozen=True, repr=False)
class WrongVersion:
    """A mistake that people make in a layer, in a few lines of our own.

    Attributes:
        name: A few words, as they stand in a report.
        advice: One sentence on what to look at.
        layer: The class, or the function.
        published: Work and file or thread in which it was published; None for a mistake that is
            only easy to make.
        generic: Whether it is a mistake that any layer can make.
    """

    name: str
    advice: str
    layer: Candidate
    published: str | None = None
    generic: bool = False

    def __repr__(self) -> str:
        return f"{self.name} - {self.advice}"


@dataclass(frozen=True)
class Start:
    """What a parameter starts from: one value, or draws with a mean of 0.

    Attributes:
        value: The value; None if it is drawn.
        std: The standard deviation of the draws.
        bound: The largest absolute value that is drawn.
    """

    value: float | None = None
    std: float = 0.0
    bound: float = math.inf


@dataclass(frozen=True)
class Layout:
    """How a right layer holds its matrices, where that is not as (out, in) and each by itself.

    Attributes:
        in_out: The names that matrices held as (in, out) have, or the modules that hold them: one
            part of a dotted name.
        packed: The names of modules that hold several projections of one size side by side along
            the outputs, and for each of them what these projections are called, in their order.
        optional: Weights that another one stands for where they are not held: a head that is the
            token embedding.
        shared: Weights that others may hold twice: a token embedding, and a head.
    """

    in_out: frozenset[str] = frozenset()
    packed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()

    def may_lack(self, name: str) -> bool:
        """Whether a layer without this weight is one all the same."""
        return name.endswith("bias") or name in self.optional

    def is_in_out(self, name: str, weight: Tensor) -> bool:
        """Whether a weight of that name is a matrix that is held as (in, out)."""
        return weight.ndim == 2 and bool(self.in_out & set(name.split(".")))

    def packed_in(self, name: str) -> tuple[str, ...]:
        """The projections that a weight of that name holds; none where it is one by itself."""
        return next((self.packed[part] for part in name.split(".") if part in self.packed), ())


@dataclass(frozen=True)
class Form:
    """A way in which others write a layer.

    Attributes:
        words: How it differs from the book's, as it stands in a report.
        call: Takes what the reader wrote, and the arguments of the book's call: the layer that was
            built; in the place of a layer without weights the function; and in that of a function
            what is given, be it a function or a class.
        contract: Whether it breaks the contract; else it is as good as the book's.
        inputs: How many of the book's inputs it can tell apart; None for all.
        masked: Whether it takes the book's mask.
        build: Makes of what the reader wrote what builds the layer; None where that does.
    """

    words: str
    call: Callable[..., Any]
    contract: bool = False
    inputs: int | None = None
    masked: bool = True
    build: Callable[[Any], Any] | None = None


@dataclass(eq=False)
class Layer:
    """Everything that is known about one layer: what is not said here, `check` does not know.

    A module of `checks/` makes it and declares each check at its function; a module of `wrong/`
    declares each wrong version at its class. They count in the order in which they stand there; the
    generic ones come last.

    Attributes:
        name: What `check` is called with: the public name in `transformer_layers`, or in the
            package that registers the layer.
        signature: How it is called, for reports.
        example: Builds the candidate, or calls it, once: what must work before any check can say
            more.
        probe: Values of the candidate that tell the wrong versions apart: outputs and gradients,
            those before an error where one ends them.
        checks: The checks, weak ones first, generic ones last.
        wrong_versions: The known wrong versions, generic ones last.
        right_ones: What wrong versions derive from: right layers, of which they change one step.
        right: The right layer, a class or a function; that of this name in `transformer_layers`
            unless given.
        synonyms: What other works call its arguments, beside what they call those of any layer.
        words: What other works call its projections and norms, by the names that it gives them, in
            words that stand in a name of weights: beside those of queries, keys, values and
            outputs, and of a first and a second norm.
        parts: What other works call those of its modules that hold weights of the same names, by
            the names that it gives them, in words that stand in the name of theirs.
        by_name: Arguments that others are given by name alone, never by place.
        options: Arguments that it does not have, and the values that others are given for them.
        attributes: Arguments that may be set as an attribute where a constructor takes none.
        implied: Arguments that a constructor need not take, since every input tells them.
        sizes: How arguments of its constructor are read off somebody's module, beside those that
            are read off any.
        leading: The axes before the features of the inputs with which a module of somebody's is
            called at its own sizes; None where the inputs are no features.
        layout: How it holds its matrices.
        starts: What its own parameters start from, by name; None where they start from constants,
            which are read off.
        weight_maps: The layers of other libraries that hold the same weights, by their public
            names, and how the weights of both are made of each other.
        defaults: The values of its arguments that are left out, as its probes are told.
        not_mistakes: The names of mistakes that any layer can make, and this one cannot: they
            change nothing in it, or one of its own wrong versions makes the same.
        forms: The forms that a candidate may have by what it takes, the likeliest first.
    """

    name: str
    signature: str
    example: Callable[[Candidate], object]
    probe: Callable[[Candidate], Iterable[Tensor]]
    checks: tuple[Check, ...] = ()
    wrong_versions: tuple[WrongVersion, ...] = ()
    right_ones: tuple[Candidate, ...] = ()
    _: KW_ONLY
    right: Any = None
    synonyms: Mapping[str, Collection[str]] = field(default_factory=dict)
    words: Mapping[str, Collection[str]] = field(default_factory=dict)
    parts: Mapping[str, Collection[str]] = field(default_factory=dict)
    by_name: Collection[str] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    attributes: Collection[str] = ()
    implied: Collection[str] = ()
    sizes: Mapping[str, Callable[[nn.Module], int | None]] = field(default_factory=dict)
    leading: tuple[int, ...] | None = (2, 3)
    layout: Layout = field(default_factory=Layout)
    starts: Mapping[str, Start] | None = None
    weight_maps: Mapping[str, WeightMap] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)
    not_mistakes: Collection[str] = ()
    forms: Callable[[Candidate], Iterable[Form]] = lambda candidate: ()

    def __post_init__(self) -> None:
        if self.right is None:
            self.right = getattr(transformer_layers, self.name, None)

    @property
    def is_class(self) -> bool:
        """Whether it is a class, which is built and then called; else it is a function."""
        return inspect.isclass(self.right)

    def check(
        self,
        law: str,
        *,
        name: str | None = None,
        weak: bool = False,
        kind: Kind = "law",
        generic: bool = False,
    ) -> Callable[[Declared], Declared]:
        """Declares a function as a check.

        Args:
            law: What it settles, in one sentence.
            name: As it stands in a report; the function's name in words unless given.
            weak: Whether it is a popular check that decides nothing.
            kind: What it is about.
            generic: Whether all layers are asked alike.

        Returns:
            A decorator, which leaves the function as it is.
        """

        def declared(run: Declared) -> Declared:
            check = Check(name or in_words(run.__name__), law, run, weak, kind, generic)
            self.checks = _generic_last((*self.checks, check))
            return run

        return declared

    def wrong(
        self,
        advice: str,
        *,
        name: str | None = None,
        published: str | None = None,
        generic: bool = False,
    ) -> Callable[[Declared], Declared]:
        """Declares a class or a function as a wrong version.

        Args:
            advice: What to look at, in one sentence.
            name: As it stands in a report; the name of the class or function in words unless given.
            published: Work and file or thread in which it was published.
            generic: Whether any layer can make this mistake.

        Returns:
            A decorator, which leaves the class or function as it is.
        """

        def declared(layer: Declared) -> Declared:
            named = name or in_words(layer.__name__)
            version = WrongVersion(named, advice, layer, published, generic)
            self.wrong_versions = _generic_last((*self.wrong_versions, version))
            return layer

        return declared

    def same_mistake(self, version: WrongVersion, layer: Candidate) -> None:
        """Declares a wrong version that makes the mistake of one of another layer.

        Args:
            version: The other layer's.
            layer: The class or function.
        """
        self.wrong(version.advice, name=version.name, published=version.published)(layer)

    def right_otherwise(self, layer: Declared) -> Declared:
        """Declares what wrong versions derive from: a right layer, which they change in one step.

        Args:
            layer: The class or function.

        Returns:
            The same.
        """
        self.right_ones += (layer,)
        return layer


class Family(Generic[View]):
    """Layers that share checks.

    Args:
        views: For each layer, how a candidate becomes what the checks are given: the candidate in
            one form for all of them, or together with what it is held against.
    """

    def __init__(self, views: Mapping[Layer, Callable[[Candidate], View]]) -> None:
        self.views = views

    def check(
        self,
        law: str | Mapping[Layer, str],
        *,
        name: str | None = None,
        weak: bool = False,
        kind: Kind = "law",
    ) -> Callable[[Callable[[View], Evidence]], Callable[[View], Evidence]]:
        """Declares a function as a check of each layer.

        Args:
            law: What it settles, in one sentence, or in one for each layer.
            name: As it stands in a report; the function's name in words unless given.
            weak: Whether it is a popular check that decides nothing.
            kind: What it is about.

        Returns:
            A decorator, which leaves the function as it is.
        """

        def declared(run: Callable[[View], Evidence]) -> Callable[[View], Evidence]:
            for layer, view in self.views.items():
                sentence = law if isinstance(law, str) else law[layer]
                named = name or in_words(run.__name__)
                layer.check(sentence, name=named, weak=weak, kind=kind)(_of_view(run, view))
            return run

        return declared


def _generic_last(declared: tuple[Known, ...]) -> tuple[Known, ...]:
    return tuple(sorted(declared, key=lambda each: each.generic))


def in_words(name: str) -> str:
    """The name of a class or a function, in words of small letters."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return parts.replace("_", " ").strip().lower()


def _of_view(
    run: Callable[[View], Evidence], view: Callable[[Candidate], View]
) -> Callable[[Candidate], Evidence]:
    return lambda candidate: run(view(candidate))
