"""Lines of reading and writing checkpoints that are wrong, by module of tests."""

from evaluation.mutation.wrongs import Change, Function

_parse_json_object = Function("checkpoints/json_file:parse_json_object")
_open_tensors = Function("checkpoints/safetensors_file:open_tensors")
_require_shape = Function("checkpoints/weights:_require_shape")
_config_text = Function("models/gpt2/checkpoint:config_text")
_find_folder = Function("checkpoints/folder:find_folder")
_open_shards = Function("checkpoints/folder:_open_shards")
_read_checkpoint = Function("checkpoints/checkpoint:read_checkpoint")
_read_json_object = Function("checkpoints/json_file:read_json_object")
_require_regular = Function("checkpoints/regular_file:require_regular")
_open_regular = Function("checkpoints/regular_file:open_regular")
_read_regular = Function("checkpoints/regular_file:read_regular")
_read = Function("checkpoints/safetensors_file:StoredTensor.read")
_read_all = Function("checkpoints/safetensors_file:read_all", "digest or flipped")
_add = Function("checkpoints/safetensors_file:_add", "digest or flipped")
_weight_shapes = Function("models/gpt2/checkpoint:weight_shapes")
_without_prefix_and_masks = Function("models/gpt2/checkpoint:without_prefix_and_masks")
_mask = Function("models/gpt2/checkpoint:_MASK")
_require_weights = Function("checkpoints/weights:require_weights")
_require_one_dtype = Function("checkpoints/weights:_require_one_dtype")
_with_first_names = Function("models/gpt2/checkpoint:_with_first_names")
_config_file_config_of = Function("models/gpt2/checkpoint:config_of")
_dropout = Function("models/gpt2/checkpoint:_dropout")
_computed = Function("models/gpt2/checkpoint:_COMPUTED")
_number = Function("checkpoints/config_entries:number_entry")
_hub_name = Function("checkpoints/folder:_HUB_NAME")
_fetch = Function("checkpoints/folder:_fetch")
_open_weights = Function("checkpoints/folder:open_weights")
_shard = Function("checkpoints/folder:_SHARD")
_read_places = Function("checkpoints/folder:_read_places")
_is_tied = Function("checkpoints/checkpoint:_is_tied")
_checkpoint_config_of = Function("checkpoints/checkpoint:_config_of")
_load = Function("checkpoints/checkpoint:load")
_write_checkpoint = Function("checkpoints/checkpoint:write_checkpoint")
_saving = Function("checkpoints/atomic_save:saving", "empty")
_remove = Function("checkpoints/atomic_save:_remove", "left_is_removed or threads")
_names_in = Function("checkpoints/atomic_save:_names_in")
_locked = Function("checkpoints/atomic_save:_locked", "another_is_writing")

# What more than one module of tests is held against.
_THE_LAST_OF_TWO_EQUAL_KEYS = _parse_json_object(
    "the last of two equal keys", "object_pairs_hook=_without_repeats, ", ""
)
_TOO_DEEP_FOR_AN_ERROR_OF_ITS_OWN = _parse_json_object(
    "too deep for an error of its own", "(ValueError, RecursionError)", "ValueError"
)
_ERRORS_OF_OPENING_PASSED_ON = _open_tensors(
    "errors of opening passed on", "with _naming(path)", "if path.name"
)
_SHAPES_OF_OTHER_SIZES_NOT_NOTICED = _require_shape(
    "shapes of other sizes not noticed", "found == expected:", "len(found) == len(expected):"
)
_EPSILON_NOT_WRITTEN = _config_text(
    "epsilon not written", '        "layer_norm_epsilon": config.layer_norm_epsilon,\n', ""
)
_THE_PATH_AS_IT_WAS_GIVEN = _find_folder(
    "the path as it was given", "Path(name_or_folder)", "name_or_folder"
)
_THE_LAST_SHARD_ONLY = _open_shards("the last shard only", "|= found", "= found")
_HEAD_NOT_COMPARED = _read_checkpoint(
    "head not compared", "if not _is_tied", "if False and _is_tied"
)

_JSON_FILE = (
    _parse_json_object("read as Latin-1", "decode()", 'decode("latin-1")'),
    _parse_json_object("UTF-16 guessed", ".decode()", ""),
    _read_json_object(
        "read whole, whatever its size", "read_regular(path, LARGEST)", "path.read_bytes()"
    ),
    _THE_LAST_OF_TWO_EQUAL_KEYS,
    _TOO_DEEP_FOR_AN_ERROR_OF_ITS_OWN,
    _parse_json_object("lists are objects", ", dict", ", dict | list"),
    Change("checkpoints/json_file:shown", "shown at any length", "_repr.", ""),
    _parse_json_object(
        "the error does not name the file",
        'f"{path}: cannot be read as JSON: {error}"',
        'f"cannot be read as JSON: {error}"',
    ),
)

_REGULAR_FILE = (
    _require_regular("size not checked", "found.st_size > largest", "False"),
    _require_regular("the largest size refused", "found.st_size >", "found.st_size >="),
    _require_regular("anything opened", "not stat.S_ISREG(found.st_mode)", "False"),
    _read_regular("what has no size read to the end", "len(content) > largest", "False"),
    _open_regular("errors of opening passed on", "OSError", "KeyError"),
    Change("checkpoints/regular_file:_told", "links not named", "not path.is_symlink()", "path"),
    Change("checkpoints/regular_file:_told", "loops not named", ", errno.ELOOP", ","),
)

_SAFETENSORS_FILE = (
    Change("checkpoints/safetensors_file:_FLOATING", "float16 for bfloat16", "bfloat16", "float16"),
    _open_tensors("other dtypes are float32", ", dtype", ", torch.float32"),
    _open_tensors("shape is a list", "tuple(part.get_shape())", "part.get_shape()"),
    _read("the first tensor for every name", "(self.name)", "(next(iter(self.file.keys())))"),
    _read("no memory passed on", "MemoryError", "KeyError"),
    _read("errors of reading passed on", "with _naming(self.path)", "if self.name"),
    _ERRORS_OF_OPENING_PASSED_ON,
    _open_tensors(
        "the last of two tensors of one name",
        "parse_json_object(header, path)",
        "pass",
    ),
    _open_tensors("headers of any length", "length > _LONGEST_HEADER", "False"),
    _open_tensors("the longest header refused", "> _LONGEST_HEADER", ">= _LONGEST_HEADER"),
    _open_tensors("length of the header read from the wrong end", '"little"', '"big"'),
    _read_all("digest not compared", "digest.hexdigest() != metadata[DIGEST]", "False"),
    _read_all("metadata not in the digest", "name != DIGEST}", "not name}"),
    _read_all("digest in the order of the keys", "item[1].name", "item[0][::-1]"),
    _add("dtypes not in the digest", "str(tensor.dtype)", '""'),
    _add("shapes not in the digest", "list(tensor.shape)", "[]"),
    _add("values not in the digest", "    digest.update(_content(tensor))\n", ""),
    Change(
        "checkpoints/safetensors_file:_naming",
        "the error says no remedy",
        "; {_REMEDY}",
        "",
    ),
)

_WEIGHTS = (
    _weight_shapes("query, key and value of one width", ", 3 * d", ", d"),
    _weight_shapes(
        "last norm before the blocks", "    for i", '    yield "ln_f.weight", (d,)\n    for i'
    ),
    _weight_shapes("one more block", "n_layer", "n_layer + 1"),
    _without_prefix_and_masks("prefix removed from some keys", "all", "any"),
    _without_prefix_and_masks("prefix kept where there is a head", "or key == HEAD ", ""),
    _without_prefix_and_masks(
        "two heads of one name", "key if key == PREFIX + HEAD else key", "key"
    ),
    _without_prefix_and_masks("masks kept", "not _MASK.fullmatch(key)", "key"),
    _mask(
        "masks of ten blocks",
        'r"h\\.[0-9]+\\.attn\\.(masked_)?bias"',
        'r"h\\.[0-9]\\.attn\\.(masked_)?bias"',
    ),
    _without_prefix_and_masks("what begins as a mask left out", "fullmatch", "match"),
    _mask(
        "every bias of the attention is a mask",
        'r"h\\.[0-9]+\\.attn\\.(masked_)?bias"',
        'r"h\\.[0-9]+\\.attn\\..*bias"',
    ),
    _require_weights("missing keys not noticed", "missing:", "len(missing) > len(found) > 0:"),
    _require_weights("no key more than were found", "(found) + 1", "(found)"),
    _require_weights("unknown keys not noticed", "unknown:", "not expected:"),
    _SHAPES_OF_OTHER_SIZES_NOT_NOTICED,
    _require_shape(
        "shapes that hold as many numbers",
        "found == expected:",
        "torch.Size(found).numel() == torch.Size(expected).numel():",
    ),
    _require_shape("transposed whatever the shape", "== expected[::-1]", "!= expected"),
    Change("checkpoints/weights:_DTYPES", "bfloat16 refused", ", torch.bfloat16", ""),
    _require_one_dtype("any dtype", "dtype not in _DTYPES", "not dtype"),
    _require_one_dtype("two dtypes", "dtype !=", "not"),
    _require_one_dtype(
        "wider dtypes after the first",
        "dtype != first",
        "isinstance(dtype, str) or dtype.itemsize > first.itemsize",
    ),
)

_CONFIG_FILE = (
    Change(
        "models/gpt2/checkpoint:_SECOND_NAMES",
        "width and positions exchanged",
        '"n_embd",\n    "max_position_embeddings": "n_positions"',
        '"n_positions",\n    "max_position_embeddings": "n_embd"',
    ),
    _with_first_names("second names not known", "_SECOND_NAMES.get(name, name)", "name"),
    _with_first_names("the last of two names", "in entries and first in entries", "== first"),
    _config_file_config_of("dropout not read", "dropout=", "dropout=0.1 + 0 * "),
    _config_file_config_of(
        "epsilon not read",
        "number_entry(\n"
        '                "layer_norm_epsilon", entries.get("layer_norm_epsilon", 1e-5)\n'
        "            )",
        "1e-5",
    ),
    _config_file_config_of("epsilon of another library", "1e-5", "1e-6"),
    _dropout("no dropout where none is named", "(name, 0.1)", "(name, 0.0)"),
    _config_file_config_of("sizes have no defaults", "_SIZES if name in entries", "_SIZES"),
    _config_file_config_of("no model_type needed", '"model_type"', '"model_type", "gpt2"'),
    _config_file_config_of("any model_type", 'entries.get("model_type") != "gpt2"', "not entries"),
    _computed("GELU without the tanh", '"gelu_pytorch_tanh"', '"gelu_pytorch_tanh", "gelu"'),
    _computed("one name of the activation", ', "gelu_pytorch_tanh"', ","),
    Change(
        "checkpoints/config_entries:require_computed",
        "1 is True",
        "type(value) is type(each) and ",
        "",
    ),
    _config_file_config_of(
        "no other width of the feed-forward network", ", 4 * config.n_embd", ","
    ),
    _config_file_config_of(
        "any width of the feed-forward network", ', "n_inner": (None, 4 * config.n_embd)', ""
    ),
    _config_file_config_of(
        "options that are not known refused",
        ", values in computed.items():\n            if name in entries",
        " in entries.keys() - {*_SIZES, *_DROPOUTS, 'layer_norm_epsilon'}:\n"
        "            values = computed.get(name, ('gpt2',))\n"
        "            if name",
    ),
    _dropout("three dropouts", "(set(shares.values())) != 1", "(shares) != 3"),
    _dropout(
        "dropouts compared as text",
        "set(shares.values())",
        "{str(entries.get(name, 0.1)) for name in _DROPOUTS}",
    ),
    Change(
        "checkpoints/config_entries:size_entry",
        "sizes of any length",
        "isinstance(value, int) and value >= 2**31",
        "value is None",
    ),
    _number("True is a number", "isinstance(value, bool) or ", ""),
    _number("infinity is a number", "not abs(value) <= sys.float_info.max", "value is None"),
    _config_file_config_of(
        "the error does not name the file", ' ValueError(f"{path}: {error}") from error', ""
    ),
    # Writing
    _config_text(
        "one dropout written",
        "**dict.fromkeys(_DROPOUTS, config.dropout)",
        '"resid_pdrop": config.dropout',
    ),
    _EPSILON_NOT_WRITTEN,
    _config_text("float32 whatever the dtype", 'str(dtype).removeprefix("torch.")', '"float32"'),
    _config_text(
        "tokens between texts left to the default", " if config.vocab_size == 50257 else None", ""
    ),
    _config_text("tokens between texts of larger vocabularies", "vocab_size ==", "vocab_size >="),
)

_FOLDER = (
    _find_folder(
        "a Path is a name on the hub",
        "isinstance(name_or_folder, str) and _HUB_NAME.fullmatch(name_or_folder)",
        "_HUB_NAME.fullmatch(os.fspath(name_or_folder))",
    ),
    _find_folder("what begins as a name is one", "fullmatch", "match"),
    _hub_name(
        "no underscores in names",
        'r"[A-Za-z0-9][\\w.-]*(/[\\w.-]+)?"',
        'r"[A-Za-z0-9][A-Za-z0-9.-]*(/[A-Za-z0-9.-]+)?"',
    ),
    _hub_name(
        "names with an owner only",
        'r"[A-Za-z0-9][\\w.-]*(/[\\w.-]+)?"',
        'r"[A-Za-z0-9][\\w.-]*(/[\\w.-]+)"',
    ),
    _THE_PATH_AS_IT_WAS_GIVEN,
    _find_folder(
        "a file for its folder",
        "    if os.path.isfile(name_or_folder):\n",
        "    if os.path.isfile(name_or_folder):\n        return Path(name_or_folder).parent\n",
    ),
    _find_folder("no shards fetched", '"model*.safetensors"', "WEIGHTS"),
    _fetch("some errors of the hub passed on", "Exception", "FileNotFoundError"),
    _fetch("errors of the hub passed on", "Exception", "NotImplementedError"),
    _fetch("all lines of the hub's error", '.partition("\\n")[0]', ""),
    _fetch("the package taken for granted", "ImportError", "NotImplementedError"),
    _open_weights("links not followed", "(weights):", "(weights) and not os.path.islink(weights):"),
    _open_weights("the index first", "(weights):", "(weights) and not os.path.isfile(index):"),
    _open_weights(
        "a link that leads nowhere in the place of the weights",
        "lexists(weights)",
        "exists(weights)",
        select="passed_over",
    ),
    _find_folder(
        "the hub asked for a link that leads nowhere",
        "os.path.lexists(name_or_folder)",
        "False",
        select="leads_to_no_folder",
    ),
    _find_folder("the revision forgotten", "wanted, revision)", "wanted, None)", select="revision"),
    _find_folder(
        "the revision of a folder",
        "if revision is not None:\n            raise",
        "if revision == 0:\n            raise",
        select="revision",
    ),
    _THE_LAST_SHARD_ONLY,
    _open_shards(
        "shards closed before they are read",
        "found, _ = stack.enter_context(open_tensors(path))",
        "with open_tensors(path) as (found, _):\n            pass",
    ),
    _open_shards(
        "missing shards not noticed",
        "raise FileNotFoundError",
        "continue\n            raise FileNotFoundError",
    ),
    _open_shards("tensors of other shards pass", "places.get(name) != shard", "name not in places"),
    _open_shards("tensors that the index does not name pass", "get(name)", "get(name, shard)"),
    _open_shards("tensors that are nowhere pass", "name not in", "not"),
    _shard(
        "any file of the folder, and others",
        'r"[^/\\\\:\\0]+\\.safetensors"',
        'r"[^\\0]+\\.safetensors"',
    ),
    _shard("other drives", 'r"[^/\\\\:\\0]+\\.safetensors"', 'r"[^/\\\\\\0]+\\.safetensors"'),
    _read_places("what begins as a shard is one", "fullmatch", "match"),
    _read_places("names of shards taken for granted", "isinstance(shard, str) or not ", ""),
    _read_places("no map is an empty one", '"weight_map"', '"weight_map", {}'),
    _open_shards(
        "names of any length opened",
        "not os.path.exists(path)",
        "path.name not in os.listdir(path.parent) and len(path.name) < 256",
    ),
    Change(
        "checkpoints/folder:_PICKLES",
        "pickle files by one name",
        ', ".ckpt", ".pickle", ".pkl", ".pt", ".pth"',
        ",",
    ),
    _open_weights(
        "pickle files refused beside the weights",
        "os.path.lexists(weights)",
        "any(path.suffix in _PICKLES for path in folder.iterdir()):\n"
        "            _refuse(folder)\n"
        "        elif os.path.lexists(weights)",
    ),
)

_CHECKPOINT = (
    _read_all("float32 whatever is stored", "read()", "read().float()", select="stored"),
    _read_checkpoint(
        "in the order of the file", ", _ in codec.weight_shapes(config)", " in stored"
    ),
    _read_checkpoint("prefix and masks kept", "codec.renamed", "dict"),
    _read_checkpoint("head not taken out", "stored.pop(name)", "stored[name]"),
    _HEAD_NOT_COMPARED,
    _is_tied(
        "head nearly the same",
        "equal(head.read().view(torch.uint8), embedding.view(torch.uint8))",
        "allclose(head.read(), embedding, equal_nan=True)",
    ),
    _is_tied("NaN is not itself", ".view(torch.uint8), embedding.view(torch.uint8)", ", embedding"),
    _is_tied(
        "head of another shape",
        "(head.dtype, head.shape) != (embedding.dtype, tuple(embedding.shape))",
        "head.dtype != embedding.dtype",
    ),
    _read_checkpoint(
        "weights read before they are checked",
        "require_weights(codec, stored, config, source)\n",
        "read_all(stored, {}, source)\n        require_weights(codec, stored, config, source)\n",
    ),
    _read_checkpoint(
        "weights not checked", "        require_weights(codec, stored, config, source)\n", ""
    ),
    _checkpoint_config_of("sizes looked for in another file", "/ CONFIG", "/ CONFIG.upper()"),
    _load("left in training mode", ".eval()", ""),
    _load(
        "weights copied into float32",
        "load_state_dict(weights, assign=True)",
        "to_empty(device='cpu').load_state_dict(weights)",
    ),
    # Writing
    _write_checkpoint(
        "weights not checked before they are written",
        '    require_weights(codec, weights, config, "weights")\n',
        "",
    ),
    _write_checkpoint(
        "weights on the meta device",
        "any(weight.is_meta for weight in weights.values())",
        "not weights",
    ),
    _write_checkpoint(
        "folder made before the check",
        "require_weights",
        "Path(folder).mkdir(exist_ok=True)\n    require_weights",
    ),
    _write_checkpoint("keys without the prefix", "codec.stored_as(key)", "key"),
    _write_checkpoint("no format named", '"format": "pt", ', ""),
    _write_checkpoint("no config in the weights", ", CONFIG: text", ""),
    _write_checkpoint(
        "weights written over in their place", "unfinished / WEIGHTS", "Path(folder) / WEIGHTS"
    ),
    _write_checkpoint(
        "config written over in its place", "unfinished / CONFIG", "Path(folder) / CONFIG"
    ),
    # A config that the weights hold
    _checkpoint_config_of(
        "the config beside the weights counts",
        "None or beside == config:\n        return config",
        "not None:\n        return beside",
    ),
    _checkpoint_config_of("another config passes", "beside is None or beside == config", "True"),
    _checkpoint_config_of("the config beside the weights is needed", "is None or beside ==", "=="),
    _checkpoint_config_of("any config that was left counts", "== config ", ""),
    _checkpoint_config_of("all sizes in the error", " if a != b", ""),
    Change("checkpoints/checkpoint:_open", "read only once", "PAUSES[-1]", "PAUSES[0]"),
    _checkpoint_config_of("weights that were replaced not noticed", "are_in_place()", "opened"),
    _EPSILON_NOT_WRITTEN,
    _THE_PATH_AS_IT_WAS_GIVEN,
    _THE_LAST_SHARD_ONLY,
)

_ASIDE = (
    _saving("the working directory", "    require_named(folder)\n", ""),
    _remove("what others left stays", "names is None or", "names is not None or"),
    _remove("all that has our names removed", "names is None or", "", select="not_ours"),
    _locked("what another is writing removed", "LOCK_EX", "LOCK_SH"),
    _locked("cleaned without a lock", "yield locked", "yield True", select="no_locks"),
    Change(
        "checkpoints/atomic_save:left_behind",
        "the first file alone counts as left behind",
        "== {pair.second}",
        "",
        select="left_behind",
    ),
    _names_in("links followed", "unfinished.is_symlink()", "False", select="link_leads"),
    _names_in("links removed", "follow_symlinks=False", "", select="link_leads"),
    _saving(
        "folders in the files' places found too late",
        "            _require_no_folders(folder, pair)\n",
        "",
        select="folder_in_the_place",
    ),
    _remove(
        "the second file removed before both are replaced",
        "between and names in ({CHECKPOINT.second}, {TOKENIZER.second})",
        "names",
        select="kill",
    ),
    _saving(
        "the second file first",
        "pair:\n                os",
        "reversed(pair):\n                os",
        select="kill or on_the_disk",
    ),
    _saving(
        "a folder that cannot be flushed is an error",
        "(OSError):  # not every system can",
        "(KeyError):",
        select="cannot_be_flushed",
    ),
    _saving("errors do not name the file", ", OSError", ", KeyError", select="full_disk"),
)

# One test, of some seconds: a change for each part of the reading.
_MUTATIONS = (
    _HEAD_NOT_COMPARED,
    _ERRORS_OF_OPENING_PASSED_ON,
    _THE_LAST_OF_TWO_EQUAL_KEYS,
    _TOO_DEEP_FOR_AN_ERROR_OF_ITS_OWN,
    _SHAPES_OF_OTHER_SIZES_NOT_NOTICED,
    _read_places(
        "names of shards taken for granted",
        "isinstance(shard, str) or not _SHARD.fullmatch(shard)",
        "shard",
    ),
)

CHECKPOINTS = {
    "checkpoints/atomic_save": _ASIDE,
    "checkpoints/checkpoint": _CHECKPOINT,
    "models/gpt2/checkpoint": _CONFIG_FILE,
    "checkpoints/folder": _FOLDER,
    "checkpoints/json_file": _JSON_FILE,
    "models/gpt2/mutations": _MUTATIONS,
    "checkpoints/regular_file": _REGULAR_FILE,
    "checkpoints/safetensors_file": _SAFETENSORS_FILE,
    "checkpoints/weights": _WEIGHTS,
}
