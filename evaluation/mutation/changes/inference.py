"""Lines that make a model ready for inference and are wrong, for the tests of inference.

Each has the tests that are about it, since a model is made ready in nearly all: all of them, with
every change, would take six minutes.
"""

from evaluation.mutation.wrongs import Change, Function

_attend = Function("models/gpt2/inference/attention:_attend", "in_blocks")
_blockwise_attention = Function(
    "models/gpt2/inference/attention:BlockwiseAttention.forward", "in_blocks"
)
_float32_product_init = Function("inference/products:Float32Product.__init__", "slices")
_float32_product = Function("inference/products:Float32Product.forward", "slices")
_float32_product_reduce = Function(
    "inference/products:Float32Product.__reduce__", "copied and float32"
)
_quantized_product_init = Function(
    "inference/products:QuantizedProduct.__init__", "float16 or sample or quantize"
)
_in_int8 = Function("inference/products:_in_int8", "int8_rounds or zeros_in_int8")
_copied = Function("models/inference:copied", "those_of_the_model or any_floating")
_head = Function("models/inference:ModelForInference.logits", "onednn")
_parts = Function("models/gpt2/inference/model:GPT2ForInference._parts", "every_product")
_for_inference_init = Function(
    "models/inference:ModelForInference.__init__", "the_error or changed"
)
_last_hidden_state = Function("models/inference:ModelForInference.last_hidden_state", "onednn")
_without_onednn = Function("inference/kernels:_without_onednn", "onednn")
_logits = Function("models/inference:_logits", "the_error")
_random_ids = Function("models/inference:_random_ids", "the_error")
_error = Function("models/inference:_error", "the_error")
_inference_error_repr = Function("models/inference:InferenceError.__repr__", "the_error")
_require_ready_to_be = Function("models/inference:_require_ready_to_be", "errors_of")

INFERENCE = (
    # Attention in blocks
    _attend("not divided by the root of d_k", "(query / math.sqrt(query.shape[-1]))", "query"),
    _attend("earlier positions not counted", "key.shape[-2] - query.shape[-2]", "0"),
    _attend(
        "keys before the block not seen",
        "mT",
        "mT\n        scores[..., : seen - rows].fill_(-math.inf)",
    ),
    _attend("first keys masked, not the last", "seen - rows :", ":rows"),
    _attend("the next position seen", "(rows)", "(rows).roll(-1, -2)"),
    _attend("no mask within the block", "(rows)", "(rows).logical_or(causal_mask(rows).mT)"),
    _blockwise_attention("no mask for several positions", "2] == 1", "2] > 0"),
    _blockwise_attention("keys of earlier positions forgotten", "key, value = cache", "cache"),
    _attend(
        "the last block only",
        "torch.cat(output, dim=-2)",
        "output[-1].expand_as(query) if len(output) == 1 else torch.cat(output[-1:] "
        "* len(output), dim=-2)[..., : query.shape[-2], :]",
    ),
    # Products
    _float32_product_init("one slice for any number of threads", "torch.get_num_threads()", "1"),
    _float32_product_init("width must be divided by the slices", "-out_features % threads", "0"),
    _float32_product(
        "padding left in the result",
        "[:out_features].view(*x.shape[:-1], out_features)",
        ".view(*x.shape[:-1], -1)",
    ),
    Change(
        "inference/choices:cut",
        "slices dealt out one by one",
        "(slices, -1)).transpose(0, 1)",
        "(-1, slices)).movedim(-1, 0)",
        select="slices",
    ),
    _float32_product_init("no bias for a single position", "pad(bias,", "pad(0 * bias,"),
    _float32_product(
        "one position of each sequence taken for one of all",
        "numel() == in_features",
        "ndim > 1 and x.shape[-2] == 1",
    ),
    _float32_product_init(
        "oneDNN taken for granted",
        "onednn_is_faster(threads)",
        "threads",
        select="without_onednn",
    ),
    _float32_product_reduce("packed weight in a copy", "__reduce__", "_reduce"),
    _float32_product_reduce("no bias in a copy", "self.bias", "None"),
    _quantized_product_init(
        "int8 for float16",
        " = torch.float16 if dtype == torch.float16 else torch.qint8",
        ", dtype = torch.qint8, torch.int8",
    ),
    _quantized_product_init(
        "float16 for int8",
        "torch.float16 if dtype == torch.float16 else torch.qint8",
        "dtype = torch.float16",
        select="int8 or sample or quantize",
    ),
    _quantized_product_init(
        "errors of torch passed on", "RuntimeError", "NotImplementedError", select="quantize"
    ),
    _in_int8("one scale for all columns", "(dim=1)", "().expand(len(rows))"),
    _in_int8(
        "scales of rows and columns exchanged",
        "(dim=1)",
        "(dim=0)[torch.arange(len(rows)) % rows.shape[1]]",
    ),
    Change(
        "inference/products:INT8_STEPS",
        "seven bits",
        "INT8_STEPS = 127",
        "INT8_STEPS = 63",
        select="int8_rounds or zeros_in_int8",
    ),
    _in_int8("scale of zeros is 0", ".clamp(min=torch.finfo(rows.dtype).tiny)", ""),
    _quantized_product_init(
        "dtype of what is stored, not of what goes in",
        "weight.new_empty(0)",
        "torch.empty(0, dtype=dtype)",
        select="with_a_cache or zeros_in_int8 or every_product",
    ),
    # The model
    _copied(
        "float32 between products in bfloat16",
        "bfloat16 if dtype == torch.bfloat16 else torch.",
        "",
    ),
    _copied("weights of the model itself", ", copy=True", "", select="changed or changes"),
    _copied("parameters as they are", "to(kept, copy=True)", "clone()"),
    _parts("products of the first block replaced", "body.h, Conv1D", "body.h[:1], Conv1D"),
    _parts(
        "products of the attention replaced",
        "body.h, Conv1D",
        "torch.nn.ModuleList(block.attn for block in body.h), Conv1D",
    ),
    _parts("attention in blocks for every dtype", " == torch.bfloat16:", ":", select="blocks_are"),
    _parts(
        "attention in blocks for no dtype",
        "dtype == torch.bfloat16:",
        "not dtype:",
        select="blocks_are",
    ),
    _head("head of the embedding as it is", "self.head", "self.body.logits"),
    _for_inference_init(
        "gradients", ".requires_grad_(False)", "", select="evaluation or generates"
    ),
    _for_inference_init("training mode", "self.eval().", "self.", select="evaluation or generates"),
    Change(
        "models/inference:ModelForInference.save_pretrained",
        "saved all the same",
        "raise TypeError",
        "return super().save_pretrained(folder)\n        raise TypeError",
        select="saved",
    ),
    # Kernels
    _last_hidden_state(
        "oneDNN on in the blocks",
        "kernels(next(self.body.parameters()).dtype, ids.numel())",
        "nullcontext()",
    ),
    _head(
        "oneDNN on in the head",
        "kernels(hidden_state.dtype, hidden_state.shape[:-1].numel())",
        "nullcontext()",
    ),
    _last_hidden_state("oneDNN off for one position of each sequence", "numel()", "shape[-1]"),
    Change(
        "inference/kernels:kernels",
        "oneDNN off for every dtype",
        "dtype == torch.bfloat16 and ",
        "",
        select="onednn",
    ),
    _without_onednn(
        "oneDNN stays off after an error",
        "try:\n        yield\n    finally",
        "yield\n    if switch",
    ),
    _without_onednn("oneDNN on afterwards, whatever it was before", "= _before", "= True"),
    _without_onednn(
        "the first thread that is done turns oneDNN on",
        "1\n            if _without ==",
        "1\n            if _without >=",
    ),
    _without_onednn(
        "the last thread remembers the switch",
        ":\n        if _without ==",
        ":\n        if _without >=",
    ),
    # The error
    _for_inference_init("measured with dropout", "evaluating", "torch.no_grad(), nullcontext"),
    _for_inference_init(
        "the model left in evaluation",
        "evaluating(model)",
        "torch.no_grad(), nullcontext(model.eval())",
    ),
    _for_inference_init(
        "measured on other tokens", "else ids", "or ids.ndim == 2 else ids", select="the_error"
    ),
    _logits("no single positions measured", "max(seq - SINGLE_POSITIONS, 0)", "seq"),
    Change(
        "models/inference:SINGLE_POSITIONS",
        "single positions for all",
        "SINGLE_POSITIONS = 8",
        "SINGLE_POSITIONS = 2**31",
        select="the_error",
    ),
    _logits(
        "fewer positions than single ones not measured",
        "max(seq - SINGLE_POSITIONS, 0)",
        "seq - SINGLE_POSITIONS",
    ),
    _random_ids(
        "all positions of a large model measured",
        "min(model.max_seq, 128)",
        "model.max_seq",
    ),
    _random_ids("more positions than a small model has", "min(model.max_seq, 128)", "128"),
    _error("spread of 0", ".clamp(min=smallest)", ""),
    _error("largest error upwards", "abs().", ""),
    _error("mean error for the root mean square", "square().mean().sqrt", "abs().mean"),
    _error("sequences counted", "same.numel()", "len(same)"),
    _inference_error_repr("share shown as percent", 'f"at {100 * ', 'f"at {'),
    _inference_error_repr(
        "one digit", '2g} of their spread at most,\\n"', '1g} of their spread at most,\\n"'
    ),
    _error(
        "NaN of the model passes",
        '    _require_finite("the model\'s own logits", expected)\n',
        "",
        select="nan",
    ),
    _error(
        "NaN of the copy passes",
        '    _require_finite(f"with weights in {dtype} the logits", actual)\n',
        "",
        select="nan",
    ),
    Change(
        "models/inference:ModelForInference.from_pretrained",
        "loaded in another dtype",
        "dtype, ",
        "ids=",
        select="checkpoint",
    ),
    # Errors
    Change(
        "models/inference:refuse_ready",
        "made ready twice",
        "isinstance(model, ModelForInference)",
        "not model",
        select="errors_of",
    ),
    _require_ready_to_be("any dtype", "dtype not in PRODUCTS", "not dtype"),
    _require_ready_to_be("partly on the CPU", 'devices != ["cpu"]', '"cpu" not in devices'),
    _for_inference_init("one axis", "ndim != 2 or ids.numel", "numel", select="errors_of"),
    _for_inference_init("no position", "2 or ids.numel() == 0", "2", select="errors_of"),
)
