"""What is trained, and how: a module for each model.

A model of another package is trained where its plan stands in `PLANS` before a run is configured.
"""

from typing import Any

from transformer_layers.models.load import MODELS
from transformer_training.plans import gemma3, gpt2, llama, transformer
from transformer_training.plans.plan import Plan

PLANS: dict[str, Plan] = {each.PLAN.name: each.PLAN for each in (gpt2, llama, gemma3, transformer)}


def plan_of(sizes: Any) -> Plan:
    """The plan of a model, by its sizes.

    Args:
        sizes: Of a class that a plan has.

    Returns:
        The plan.

    Raises:
        TypeError: If no plan has the class.
    """
    for plan in PLANS.values():
        if isinstance(sizes, plan.sizes):
            return plan
    known = ", ".join(plan.sizes.__name__ for plan in PLANS.values())
    raise TypeError(f"sizes must be of {known}, got {type(sizes).__name__}")


def plans_by_type() -> dict[str, Plan]:
    """The plans of language models by each `model_type` of `config.json` that they are for."""
    plans = [plan for plan in PLANS.values() if not plan.pairs]
    return {
        name: plan
        for plan in plans
        for name in (
            plan.codec.model_type,
            *(other for other, model in MODELS.items() if model is plan.model),
        )
    }
