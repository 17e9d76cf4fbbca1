"""Lines that are wrong only under torch's machinery, for `test_machinery.py`.

Each makes a layer or two wrong, so that the cases of these layers are enough: all of them, with
every change, would take half an hour.
"""

from evaluation.mutation.wrongs import Change, Function

_layer_norm = Function(
    "norms/layer_norm:LayerNorm.forward", "LayerNorm and not (without or two_ranks)"
)
_layer_norm_init = Function("norms/layer_norm:LayerNorm.__init__", "LayerNorm and copy")

MACHINERY = (
    _layer_norm(
        "a number read from a tensor",
        "* x_hat",
        "* x_hat * (1.0 if x_hat.isfinite().all().item() else 2.0)",
    ),
    _layer_norm(
        "a number read from a tensor, compiled to machine code",
        "* x_hat",
        "* x_hat * (1.0 if x_hat.isfinite().all().item() else 2.0)",
        select="machine_code",
    ),
    _layer_norm(
        "variance detached",
        "square",
        "detach().square",
        select="LayerNorm and (gradcheck or jacrev)",
    ),
    _layer_norm_init(
        "an attribute that cannot be pickled",
        "= eps",
        "= eps\n        self.root = lambda var: torch.sqrt(var + eps)",
    ),
    Change(
        "norms/layer_norm:LayerNorm.extra_repr",
        "a copy that shares the weights",
        "extra_repr",
        "__deepcopy__(self, memo):\n        return self\n\n    def extra_repr",
        select="LayerNorm and copy",
    ),
    _layer_norm(
        "no bias where there are no gradients",
        "None",
        "None and torch.is_grad_enabled()",
        select="LayerNorm and inference",
    ),
    _layer_norm(
        "a result of the parameters' dtype or a wider one",
        ".to(x.dtype)",
        "",
        select="LayerNorm and (dtype or autocast)",
    ),
    _layer_norm(
        "view of strides",
        "at_least_float32(x)",
        "at_least_float32(x.view(x.numel()).view(x.shape))",
        select="LayerNorm and layout",
    ),
    _layer_norm(
        "numbers made on the CPU",
        "* x_hat",
        "* x_hat * torch.ones(self.d_model, device='cpu')",
        select="LayerNorm and meta",
    ),
    _layer_norm_init(
        "weight frozen until the first forward",
        "(d_model, device=device, dtype=dtype)",
        "(d_model), requires_grad=False)\n"
        "        self.register_forward_pre_hook(lambda *_: "
        "self.weight.requires_grad_() and None",
        select="LayerNorm and two_ranks",
    ),
    Change(
        "norms/batch_norm:BatchNorm1d.forward",
        "running averages moved in evaluation too",
        "training",
        "weight is not None",
        select="BatchNorm1d and (vmap or jacrev or copy)",
    ),
    Change(
        "norms/batch_norm:BatchNorm1d.__init__",
        "running averages missing in the state dict",
        ')\n        self.register_buffer("running_var"',
        ', persistent=False)\n        self.register_buffer("running_var"',
        select="BatchNorm1d and copy",
    ),
    Change(
        "norms/batch_norm:BatchNorm1d._update_running",
        "an empty batch counted",
        "count ==",
        "count <",
        select="BatchNorm1d and empty",
    ),
    Change(
        "validation:require_dtype",
        "autocast not asked about",
        "_autocasts(x)",
        "x.is_meta",
        select="Conv1D and autocast",
    ),
)
