"""Lines that are wrong only under torch's machinery, for `test_machinery.py`.

Each makes a layer or two wrong, so that the cases of these layers are enough: all of them, with
every change, would take half an hour.
"""

from tests.against_wrong_versions.wrongs import Change

MACHINERY = (
    Change(
        "layer_norm",
        "a number read from a tensor",
        "y = self.weight * x_hat",
        "y = self.weight * x_hat * (1.0 if x_hat.isfinite().all().item() else 2.0)",
        select="LayerNorm and not (without or two_ranks)",
    ),
    Change(
        "layer_norm",
        "a number read from a tensor, compiled to machine code",
        "y = self.weight * x_hat",
        "y = self.weight * x_hat * (1.0 if x_hat.isfinite().all().item() else 2.0)",
        select="machine_code",
    ),
    Change(
        "layer_norm",
        "variance detached",
        "centered.square().mean",
        "centered.detach().square().mean",
        select="LayerNorm and (gradcheck or jacrev)",
    ),
    Change(
        "layer_norm",
        "an attribute that cannot be pickled",
        "self.eps = eps",
        "self.eps = eps\n        self.root = lambda var: torch.sqrt(var + eps)",
        select="LayerNorm and copy",
    ),
    Change(
        "layer_norm",
        "a copy that shares the weights",
        "    def extra_repr(self)",
        "    def __deepcopy__(self, memo):\n        return self\n\n    def extra_repr(self)",
        select="LayerNorm and copy",
    ),
    Change(
        "layer_norm",
        "no bias where there are no gradients",
        "if self.bias is not None:\n            y",
        "if self.bias is not None and torch.is_grad_enabled():\n            y",
        select="LayerNorm and inference",
    ),
    Change(
        "layer_norm",
        "a result of the parameters' dtype or a wider one",
        "return y.to(x.dtype)",
        "return y",
        select="LayerNorm and (dtype or autocast)",
    ),
    Change(
        "layer_norm",
        "view of strides",
        "wide = at_least_float32(x)",
        "wide = at_least_float32(x.view(x.numel()).view(x.shape))",
        select="LayerNorm and layout",
    ),
    Change(
        "layer_norm",
        "numbers made on the CPU",
        "y = self.weight * x_hat",
        "y = self.weight * x_hat * torch.ones(self.d_model, device='cpu')",
        select="LayerNorm and meta",
    ),
    Change(
        "layer_norm",
        "weight frozen until the first forward",
        "self.weight = nn.Parameter(torch.empty(d_model, device=device, dtype=dtype))",
        "self.weight = nn.Parameter(torch.empty(d_model), requires_grad=False)\n"
        "        self.register_forward_pre_hook(lambda *_: self.weight.requires_grad_() and None)",
        select="LayerNorm and two_ranks",
    ),
    Change(
        "batch_norm",
        "running averages moved in evaluation too",
        "        if self.training:\n            axes",
        "        if self.weight is not None:\n            axes",
        select="BatchNorm1d and (vmap or jacrev or copy)",
    ),
    Change(
        "batch_norm",
        "running averages missing in the state dict",
        '"running_mean", torch.empty_like(self.weight))',
        '"running_mean", torch.empty_like(self.weight), persistent=False)',
        select="BatchNorm1d and copy",
    ),
    Change(
        "batch_norm",
        "an empty batch counted",
        "if count == 0:",
        "if count < 0:",
        select="BatchNorm1d and empty",
    ),
    Change(
        "validation",
        "autocast not asked about",
        "if _autocasts(x) and",
        "if x.is_meta and",
        select="Conv1D and autocast",
    ),
)
