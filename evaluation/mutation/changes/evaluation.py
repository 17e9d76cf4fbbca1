"""Lines of the twin in evaluation mode that are wrong, for `test_evaluation.py`."""

from evaluation.mutation.wrongs import Function

_in_evaluation = Function("generation/evaluation:in_evaluation")
_evaluating = Function("generation/evaluation:evaluating")

EVALUATION = (
    # Modes and gradients
    _in_evaluation(
        "dropout stays on",
        "training=False, ",
        "",
    ),
    _evaluating("the model's own modes switched", "in_evaluation(model)", "model.eval()"),
    _in_evaluation(
        "children of the model itself",
        '        twins[module].__dict__["_modules"] = children\n',
        "",
    ),
    _in_evaluation("what was compiled is called", ", _compiled_call_impl=None", ""),
    _in_evaluation(
        "parameters and buffers in other dictionaries",
        "    return twins",
        '        twins[module].__dict__["_buffers"] = dict(module._buffers)\n    return twins',
    ),
    _evaluating("gradients recorded while evaluating", "no_grad", "enable_grad"),
)
