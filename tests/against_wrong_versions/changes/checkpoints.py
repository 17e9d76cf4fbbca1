"""Lines of reading and writing checkpoints that are wrong, by module of tests."""

from tests.against_wrong_versions.wrongs import Change

# What more than one module of tests is held against.
_THE_LAST_OF_TWO_EQUAL_KEYS = Change(
    "gpt2/files/json_file",
    "the last of two equal keys",
    "object_pairs_hook=_without_repeats, ",
    "",
)
_TOO_DEEP_FOR_AN_ERROR_OF_ITS_OWN = Change(
    "gpt2/files/json_file",
    "too deep for an error of its own",
    "except (ValueError, RecursionError) as error:",
    "except ValueError as error:",
)
_ERRORS_OF_OPENING_PASSED_ON = Change(
    "gpt2/files/safetensors_file",
    "errors of opening passed on",
    "    with _naming(path):\n        opened",
    "    if path.name:\n        opened",
)
_SHAPES_OF_OTHER_SIZES_NOT_NOTICED = Change(
    "gpt2/files/weights",
    "shapes of other sizes not noticed",
    "    if found == expected:\n",
    "    if len(found) == len(expected):\n",
)
_EPSILON_NOT_WRITTEN = Change(
    "gpt2/files/config_file",
    "epsilon not written",
    '        "layer_norm_epsilon": config.layer_norm_epsilon,\n',
    "",
)
_THE_PATH_AS_IT_WAS_GIVEN = Change(
    "gpt2/files/folder",
    "the path as it was given",
    "        return Path(name_or_folder)\n    if os.path.isfile",
    "        return name_or_folder\n    if os.path.isfile",
)
_THE_LAST_SHARD_ONLY = Change(
    "gpt2/files/folder",
    "the last shard only",
    "        tensors |= found\n",
    "        tensors = found\n",
)
_HEAD_NOT_COMPARED = Change(
    "gpt2/files/checkpoint",
    "head not compared",
    "if head is not None and not _is_tied(",
    "if head is None and _is_tied(",
)

_JSON_FILE = (
    Change(
        "gpt2/files/json_file",
        "read as Latin-1",
        "content.decode()",
        'content.decode("latin-1")',
    ),
    Change(
        "gpt2/files/json_file",
        "UTF-16 guessed",
        "            content.decode(), object",
        "            content, object",
    ),
    Change(
        "gpt2/files/json_file",
        "a folder is there",
        "if not os.path.isfile(path):",
        "if not os.path.exists(path):",
    ),
    Change(
        "gpt2/files/json_file",
        "read whole, whatever its size",
        "file.read(_LARGEST + 1)",
        "file.read()",
    ),
    Change(
        "gpt2/files/json_file",
        "size not checked",
        "if len(content) > _LARGEST:",
        "if len(content) < 0:",
    ),
    Change(
        "gpt2/files/json_file",
        "largest size refused",
        "if len(content) > _LARGEST:",
        "if len(content) >= _LARGEST:",
    ),
    _THE_LAST_OF_TWO_EQUAL_KEYS,
    Change(
        "gpt2/files/json_file",
        "NaN is a number",
        ", parse_constant=_refuse_constant",
        "",
    ),
    _TOO_DEEP_FOR_AN_ERROR_OF_ITS_OWN,
    Change(
        "gpt2/files/json_file",
        "lists are objects",
        "if not isinstance(value, dict):",
        "if not isinstance(value, dict | list):",
    ),
    Change(
        "gpt2/files/json_file",
        "shown at any length",
        "return _repr.repr(value)",
        "return repr(value)",
    ),
    Change(
        "gpt2/files/json_file",
        "the error does not name the file",
        'raise ValueError(f"{path}: cannot be read as JSON: {error}") from error',
        'raise ValueError(f"cannot be read as JSON: {error}") from error',
    ),
)

_SAFETENSORS_FILE = (
    Change(
        "gpt2/files/safetensors_file",
        "float16 for bfloat16",
        '"BF16": torch.bfloat16',
        '"BF16": torch.float16',
    ),
    Change(
        "gpt2/files/safetensors_file",
        "other dtypes are float32",
        "_FLOATING.get(dtype, dtype)",
        "_FLOATING.get(dtype, torch.float32)",
    ),
    Change(
        "gpt2/files/safetensors_file",
        "shape is a list",
        "tuple(part.get_shape())",
        "part.get_shape()",
    ),
    Change(
        "gpt2/files/safetensors_file",
        "the first tensor for every name",
        "self.file.get_tensor(self.name)",
        "self.file.get_tensor(next(iter(self.file.keys())))",
    ),
    Change("gpt2/files/safetensors_file", "mapped", ', backend="pread"', ""),
    Change(
        "gpt2/files/safetensors_file",
        "errors of reading passed on",
        "        with _naming(self.path):\n            return",
        "        if self.name:\n            return",
    ),
    _ERRORS_OF_OPENING_PASSED_ON,
    Change(
        "gpt2/files/safetensors_file",
        "the last of two tensors of one name",
        '            parse_json_object(raw.read(int.from_bytes(raw.read(8), "little")), path)\n',
        "            raw.read(8)\n",
    ),
    Change(
        "gpt2/files/safetensors_file",
        "length of the header read from the wrong end",
        'raw.read(8), "little")',
        'raw.read(8), "big")',
    ),
    Change(
        "gpt2/files/safetensors_file",
        "the error says no remedy",
        "; download or copy it again",
        "",
    ),
)

_WEIGHTS = (
    Change(
        "gpt2/files/weights",
        "query, key and value of one width",
        '"attn.c_attn.weight": (d, 3 * d)',
        '"attn.c_attn.weight": (d, d)',
    ),
    Change(
        "gpt2/files/weights",
        "last norm before the blocks",
        '    yield "wpe.weight", (config.n_positions, d)\n',
        '    yield "wpe.weight", (config.n_positions, d)\n    yield "ln_f.weight", (d,)\n',
    ),
    Change(
        "gpt2/files/weights",
        "one more block",
        "range(config.n_layer)",
        "range(config.n_layer + 1)",
    ),
    Change(
        "gpt2/files/weights",
        "prefix removed from some keys",
        "if all(key.startswith(PREFIX) or key == HEAD for key in stored):",
        "if any(key.startswith(PREFIX) or key == HEAD for key in stored):",
    ),
    Change(
        "gpt2/files/weights",
        "prefix kept where there is a head",
        "if all(key.startswith(PREFIX) or key == HEAD for key in stored):",
        "if all(key.startswith(PREFIX) for key in stored):",
    ),
    Change(
        "gpt2/files/weights",
        "two heads of one name",
        "key if key == PREFIX + HEAD else key.removeprefix(PREFIX): value",
        "key.removeprefix(PREFIX): value",
    ),
    Change(
        "gpt2/files/weights",
        "masks kept",
        "if not _MASK.fullmatch(key)}",
        "if key}",
    ),
    Change(
        "gpt2/files/weights",
        "masks of ten blocks",
        r"h\.[0-9]+\.attn",
        r"h\.[0-9]\.attn",
    ),
    Change(
        "gpt2/files/weights",
        "what begins as a mask left out",
        "_MASK.fullmatch(key)",
        "_MASK.match(key)",
    ),
    Change(
        "gpt2/files/weights",
        "every bias of the attention is a mask",
        r"attn\.(masked_)?bias",
        r"attn\..*bias",
    ),
    Change(
        "gpt2/files/weights",
        "missing keys not noticed",
        "    if missing:\n",
        "    if len(missing) > len(found) > 0:\n",
    ),
    Change(
        "gpt2/files/weights",
        "no key more than were found",
        "len(found) + 1",
        "len(found)",
    ),
    Change(
        "gpt2/files/weights",
        "unknown keys not noticed",
        "    if unknown:\n",
        "    if not expected:\n",
    ),
    _SHAPES_OF_OTHER_SIZES_NOT_NOTICED,
    Change(
        "gpt2/files/weights",
        "shapes that hold as many numbers",
        "    if found == expected:\n",
        "    if torch.Size(found).numel() == torch.Size(expected).numel():\n",
    ),
    Change(
        "gpt2/files/weights",
        "transposed whatever the shape",
        "if found == expected[::-1]:",
        "if found != expected:",
    ),
    Change(
        "gpt2/files/weights",
        "bfloat16 refused",
        "torch.float16, torch.bfloat16)",
        "torch.float16)",
    ),
    Change(
        "gpt2/files/weights",
        "any dtype",
        "if dtype not in _DTYPES:",
        "if not dtype:",
    ),
    Change(
        "gpt2/files/weights",
        "two dtypes",
        "if dtype != first:",
        "if not first:",
    ),
    Change(
        "gpt2/files/weights",
        "wider dtypes after the first",
        "if dtype != first:",
        "if isinstance(dtype, str) or dtype.itemsize > first.itemsize:",
    ),
)

_CONFIG_FILE = (
    Change(
        "gpt2/files/config_file",
        "width and positions exchanged",
        '"hidden_size": "n_embd",\n    "max_position_embeddings": "n_positions",',
        '"hidden_size": "n_positions",\n    "max_position_embeddings": "n_embd",',
    ),
    Change(
        "gpt2/files/config_file",
        "second names not known",
        "return {_SECOND_NAMES.get(name, name): value",
        "return {name: value",
    ),
    Change(
        "gpt2/files/config_file",
        "the last of two names",
        "if second in entries and first in entries:",
        "if second == first:",
    ),
    Change(
        "gpt2/files/config_file",
        "dropout not read",
        "dropout=_dropout(entries),",
        "dropout=0.1 + 0 * _dropout(entries),",
    ),
    Change(
        "gpt2/files/config_file",
        "epsilon not read",
        '_number("layer_norm_epsilon", entries, 1e-5)',
        "1e-5",
    ),
    Change(
        "gpt2/files/config_file",
        "epsilon of another library",
        '_number("layer_norm_epsilon", entries, 1e-5)',
        '_number("layer_norm_epsilon", entries, 1e-6)',
    ),
    Change(
        "gpt2/files/config_file",
        "no dropout where none is named",
        "_number(name, entries, 0.1)",
        "_number(name, entries, 0.0)",
    ),
    Change(
        "gpt2/files/config_file",
        "sizes have no defaults",
        "for name in _SIZES if name in entries}",
        "for name in _SIZES}",
    ),
    Change(
        "gpt2/files/config_file",
        "no model_type needed",
        'if entries.get("model_type") != "gpt2":',
        'if entries.get("model_type", "gpt2") != "gpt2":',
    ),
    Change(
        "gpt2/files/config_file",
        "any model_type",
        'if entries.get("model_type") != "gpt2":',
        "if not entries:",
    ),
    Change(
        "gpt2/files/config_file",
        "GELU without the tanh",
        '("gelu_new", "gelu_pytorch_tanh")',
        '("gelu_new", "gelu_pytorch_tanh", "gelu")',
    ),
    Change(
        "gpt2/files/config_file",
        "one name of the activation",
        '("gelu_new", "gelu_pytorch_tanh")',
        '("gelu_new",)',
    ),
    Change(
        "gpt2/files/config_file",
        "1 is True",
        "type(value) is type(each) and value == each",
        "value == each",
    ),
    Change(
        "gpt2/files/config_file",
        "no other width of the feed-forward network",
        "(None, 4 * config.n_embd)",
        "(None,)",
    ),
    Change(
        "gpt2/files/config_file",
        "any width of the feed-forward network",
        ', "n_inner": (None, 4 * config.n_embd)}',
        "}",
    ),
    Change(
        "gpt2/files/config_file",
        "options that are not known refused",
        "        for name, values in computed.items():\n            if name in entries:\n",
        "        for name in entries.keys() - {*_SIZES, *_DROPOUTS, 'layer_norm_epsilon'}:\n"
        "            values = computed.get(name, ('gpt2',))\n            if name:\n",
    ),
    Change(
        "gpt2/files/config_file",
        "three dropouts",
        "if len(set(shares.values())) != 1:",
        "if len(shares) != 3:",
    ),
    Change(
        "gpt2/files/config_file",
        "dropouts compared as text",
        "if len(set(shares.values())) != 1:",
        "if len({str(entries.get(name, 0.1)) for name in _DROPOUTS}) != 1:",
    ),
    Change(
        "gpt2/files/config_file",
        "sizes of any length",
        "if isinstance(value, int) and value >= 2**31:",
        "if value is None:",
    ),
    Change(
        "gpt2/files/config_file",
        "True is a number",
        "isinstance(value, int | float) and not isinstance(value, bool)",
        "isinstance(value, int | float)",
    ),
    Change(
        "gpt2/files/config_file",
        "infinity is a number",
        "if not is_number or not abs(value) <= sys.float_info.max:",
        "if not is_number:",
    ),
    Change(
        "gpt2/files/config_file",
        "the error does not name the file",
        'raise ValueError(f"{path}: {error}") from error',
        "raise",
    ),
    # Writing
    Change(
        "gpt2/files/config_file",
        "one dropout written",
        "**dict.fromkeys(_DROPOUTS, config.dropout),",
        '"resid_pdrop": config.dropout,',
    ),
    _EPSILON_NOT_WRITTEN,
    Change(
        "gpt2/files/config_file",
        "float32 whatever the dtype",
        'str(dtype).removeprefix("torch.")',
        '"float32"',
    ),
    Change(
        "gpt2/files/config_file",
        "tokens between texts left to the default",
        "end_of_text = 50256 if config.vocab_size == 50257 else None",
        "end_of_text = 50256",
    ),
    Change(
        "gpt2/files/config_file",
        "tokens between texts of larger vocabularies",
        "if config.vocab_size == 50257 else",
        "if config.vocab_size >= 50257 else",
    ),
)

_FOLDER = (
    Change(
        "gpt2/files/folder",
        "a Path is a name on the hub",
        "if isinstance(name_or_folder, str) and _HUB_NAME.fullmatch(name_or_folder):",
        "if _HUB_NAME.fullmatch(os.fspath(name_or_folder)):",
    ),
    Change(
        "gpt2/files/folder",
        "what begins as a name is one",
        "_HUB_NAME.fullmatch(",
        "_HUB_NAME.match(",
    ),
    Change(
        "gpt2/files/folder",
        "no underscores in names",
        r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?",
        r"[A-Za-z0-9][A-Za-z0-9.-]*(/[A-Za-z0-9.-]+)?",
    ),
    Change(
        "gpt2/files/folder",
        "names with an owner only",
        r"(/[\w.-]+)?",
        r"(/[\w.-]+)",
    ),
    _THE_PATH_AS_IT_WAS_GIVEN,
    Change(
        "gpt2/files/folder",
        "a file for its folder",
        "    if os.path.isfile(name_or_folder):\n        raise ValueError(",
        "    if os.path.isfile(name_or_folder):\n"
        "        return Path(name_or_folder).parent\n        raise ValueError(",
    ),
    Change(
        "gpt2/files/folder",
        "everything fetched",
        'snapshot_download(name, allow_patterns=[CONFIG, "model*.safetensors", INDEX])',
        "snapshot_download(name)",
    ),
    Change(
        "gpt2/files/folder",
        "no shards fetched",
        '"model*.safetensors"',
        "WEIGHTS",
    ),
    Change(
        "gpt2/files/folder",
        "some errors of the hub passed on",
        "    except Exception as error:",
        "    except FileNotFoundError as error:",
    ),
    Change(
        "gpt2/files/folder",
        "errors of the hub passed on",
        "    except Exception as error:",
        "    except NotImplementedError as error:",
    ),
    Change(
        "gpt2/files/folder",
        "all lines of the hub's error",
        'str(error).strip().partition("\\n")[0]',
        "str(error).strip()",
    ),
    Change(
        "gpt2/files/folder",
        "the package taken for granted",
        "    except ImportError as error:",
        "    except NotImplementedError as error:",
    ),
    Change(
        "gpt2/files/folder",
        "links not followed",
        "        if os.path.isfile(weights):\n",
        "        if os.path.isfile(weights) and not os.path.islink(weights):\n",
    ),
    Change(
        "gpt2/files/folder",
        "the index first",
        "        if os.path.isfile(weights):\n",
        "        if os.path.isfile(weights) and not os.path.isfile(index):\n",
    ),
    Change(
        "gpt2/files/folder",
        "a folder in the place of the weights",
        "        if os.path.isfile(weights):\n",
        "        if os.path.exists(weights):\n",
    ),
    _THE_LAST_SHARD_ONLY,
    Change(
        "gpt2/files/folder",
        "shards closed before they are read",
        "found, _ = stack.enter_context(open_tensors(path))\n        for",
        "with open_tensors(path) as (found, _):\n            pass\n        for",
    ),
    Change(
        "gpt2/files/folder",
        "missing shards not noticed",
        "        if not os.path.isfile(path):\n            raise FileNotFoundError(",
        "        if not os.path.isfile(path):\n            continue\n"
        "            raise FileNotFoundError(",
    ),
    Change(
        "gpt2/files/folder",
        "tensors of other shards pass",
        "if places.get(name) != shard:",
        "if name not in places:",
    ),
    Change(
        "gpt2/files/folder",
        "tensors that the index does not name pass",
        "if places.get(name) != shard:",
        "if places.get(name, shard) != shard:",
    ),
    Change(
        "gpt2/files/folder",
        "tensors that are nowhere pass",
        "        if name not in tensors:\n",
        "        if not tensors:\n",
    ),
    Change(
        "gpt2/files/folder",
        "any file of the folder, and others",
        r'r"[^/\\:\0]+\.safetensors"',
        r'r"[^\0]+\.safetensors"',
    ),
    Change(
        "gpt2/files/folder",
        "other drives",
        r"[^/\\:\0]+",
        r"[^/\\\0]+",
    ),
    Change(
        "gpt2/files/folder",
        "what begins as a shard is one",
        "_SHARD.fullmatch(shard)",
        "_SHARD.match(shard)",
    ),
    Change(
        "gpt2/files/folder",
        "names of shards taken for granted",
        "if not isinstance(shard, str) or not _SHARD.fullmatch(shard):",
        "if not _SHARD.fullmatch(shard):",
    ),
    Change(
        "gpt2/files/folder",
        "no map is an empty one",
        '.get("weight_map")\n',
        '.get("weight_map", {})\n',
    ),
    Change(
        "gpt2/files/folder",
        "names of any length opened",
        "        if not os.path.isfile(path):\n",
        "        if path.name not in os.listdir(path.parent) and len(path.name) < 256:\n",
    ),
    Change(
        "gpt2/files/folder",
        "pickle files by one name",
        '(".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth")',
        '(".bin",)',
    ),
    Change(
        "gpt2/files/folder",
        "pickle files refused beside the weights",
        "        if os.path.isfile(weights):\n",
        "        if any(path.suffix in _PICKLES for path in folder.iterdir()):\n"
        "            _refuse(folder)\n        elif os.path.isfile(weights):\n",
    ),
)

_CHECKPOINT = (
    Change(
        "gpt2/files/checkpoint",
        "float32 whatever is stored",
        "stored[key].read() for",
        "stored[key].read().float() for",
    ),
    Change(
        "gpt2/files/checkpoint",
        "in the order of the file",
        "for key, _ in weight_shapes(config)}",
        "for key in stored}",
    ),
    Change(
        "gpt2/files/checkpoint",
        "prefix and masks kept",
        "stored = without_prefix_and_masks(tensors)",
        "stored = dict(tensors)",
    ),
    Change(
        "gpt2/files/checkpoint",
        "head not taken out",
        "head = stored.pop(HEAD, None)",
        "head = stored.get(HEAD)",
    ),
    _HEAD_NOT_COMPARED,
    Change(
        "gpt2/files/checkpoint",
        "head nearly the same",
        "return torch.equal(head.read().view(torch.uint8), embedding.view(torch.uint8))",
        "return torch.allclose(head.read(), embedding, equal_nan=True)",
    ),
    Change(
        "gpt2/files/checkpoint",
        "NaN is not itself",
        "return torch.equal(head.read().view(torch.uint8), embedding.view(torch.uint8))",
        "return torch.equal(head.read(), embedding)",
    ),
    Change(
        "gpt2/files/checkpoint",
        "head of another shape",
        "    if (head.dtype, head.shape) != (embedding.dtype, tuple(embedding.shape)):",
        "    if head.dtype != embedding.dtype:",
    ),
    Change(
        "gpt2/files/checkpoint",
        "weights read before they are checked",
        "        require_weights(stored, config, source)\n        weights = {key: stored[key]."
        "read() for key, _ in weight_shapes(config)}\n",
        "        weights = {key: value.read() for key, value in stored.items()}\n"
        "        require_weights(stored, config, source)\n",
    ),
    Change(
        "gpt2/files/checkpoint",
        "weights not checked",
        "        require_weights(stored, config, source)\n",
        "",
    ),
    Change(
        "gpt2/files/checkpoint",
        "sizes looked for in another file",
        "path = folder / CONFIG\n",
        "path = folder / CONFIG.upper()\n",
    ),
    Change(
        "gpt2/model",
        "left in training mode",
        "return model.eval()",
        "return model",
    ),
    Change(
        "gpt2/model",
        "weights copied into float32",
        "model.load_state_dict(weights, assign=True)",
        "model.to_empty(device='cpu').load_state_dict(weights)",
    ),
    # Writing
    Change(
        "gpt2/files/checkpoint",
        "weights not checked before they are written",
        '    require_weights(weights, config, "weights")\n',
        "",
    ),
    Change(
        "gpt2/files/checkpoint",
        "weights on the meta device",
        "if any(weight.is_meta for weight in weights.values()):",
        "if not weights:",
    ),
    Change(
        "gpt2/files/checkpoint",
        "folder made before the check",
        '    require_weights(weights, config, "weights")\n',
        '    Path(folder).mkdir(exist_ok=True)\n    require_weights(weights, config, "weights")\n',
    ),
    Change(
        "gpt2/files/checkpoint",
        "keys without the prefix",
        "stored = {PREFIX + key: weight",
        "stored = {key: weight",
    ),
    Change("gpt2/files/checkpoint", "no format named", '"format": "pt", ', ""),
    Change("gpt2/files/checkpoint", "no config in the weights", ", CONFIG: text}", "}"),
    Change(
        "gpt2/files/checkpoint",
        "weights written over in their place",
        "write_tensors(unfinished / WEIGHTS,",
        "write_tensors(Path(folder) / WEIGHTS,",
    ),
    Change(
        "gpt2/files/checkpoint",
        "config written over in its place",
        "(unfinished / CONFIG).write_text(",
        "(Path(folder) / CONFIG).write_text(",
    ),
    # A config that the weights hold
    Change(
        "gpt2/files/checkpoint",
        "the config beside the weights counts",
        "if beside is None or beside == config:\n        return config",
        "if beside is not None:\n        return beside",
    ),
    Change(
        "gpt2/files/checkpoint",
        "another config passes",
        "if beside is None or beside == config:",
        "if True:",
    ),
    Change(
        "gpt2/files/checkpoint",
        "the config beside the weights is needed",
        "if beside is None or beside == config:",
        "if beside == config:",
    ),
    Change(
        "gpt2/files/checkpoint",
        "any config that was left counts",
        "if any(_config_in(left) == config for left",
        "if any(_config_in(left) for left",
    ),
    Change(
        "gpt2/files/checkpoint",
        "all sizes in the error",
        " if a != b)",
        ")",
    ),
    Change(
        "gpt2/files/checkpoint",
        "read only once",
        "if pause == PAUSES[-1]:",
        "if pause == PAUSES[0]:",
    ),
    Change(
        "gpt2/files/checkpoint",
        "weights that were replaced not noticed",
        "if not stored.are_in_place():",
        "if not stored.opened:",
    ),
    _EPSILON_NOT_WRITTEN,
    _THE_PATH_AS_IT_WAS_GIVEN,
    _THE_LAST_SHARD_ONLY,
)

_ASIDE = (
    Change("gpt2/files/aside", "parents not made", "parents=True, ", ""),
    Change(
        "gpt2/files/aside",
        "the working directory",
        "    require_named(folder)\n",
        "",
        select="empty",
    ),
    Change(
        "gpt2/files/aside",
        "what others left stays",
        '    names = {path.name for path in unfinished.glob("*")}\n',
        "    names = {path.name for path in unfinished.glob('*')}\n    return\n",
        select="left_is_removed or threads",
    ),
    Change(
        "gpt2/files/aside",
        "everything in the folder removed",
        "for name in reversed(pair):",
        "for name in names:",
        select="left_is_removed",
    ),
    Change(
        "gpt2/files/aside",
        "what another is writing removed",
        "fcntl.flock(descriptor, fcntl.LOCK_EX)",
        "fcntl.flock(descriptor, fcntl.LOCK_SH)",
        select="another_is_writing",
    ),
    Change(
        "gpt2/files/aside",
        "cleaned without a lock",
        "            yield locked\n",
        "            yield True\n",
        select="no_locks",
    ),
    Change(
        "gpt2/files/aside",
        "the first file alone counts as left behind",
        "if not (path.parent / pair.first).exists()]",
        "if path.exists()]",
        select="left_behind",
    ),
    Change(
        "gpt2/files/aside",
        "the second file removed before both are replaced",
        "if not between and names in ({CHECKPOINT.second}, {TOKENIZER.second}):",
        "if not names:",
        select="kill",
    ),
    Change(
        "gpt2/files/aside",
        "the second file first",
        "            for name in pair:\n                os.replace(",
        "            for name in reversed(pair):\n                os.replace(",
        select="kill or on_the_disk",
    ),
    Change(
        "gpt2/files/aside",
        "not flushed",
        "                _flush(unfinished / name)\n",
        "                pass\n",
        select="disk",
    ),
    Change(
        "gpt2/files/aside",
        "names not flushed",
        "            _flush(folder)\n",
        "            pass\n",
        select="on_the_disk",
    ),
    Change(
        "gpt2/files/aside",
        "a folder that cannot be flushed is an error",
        "        with suppress(OSError):  # not every system can\n",
        "        with suppress(KeyError):\n",
        select="cannot_be_flushed",
    ),
    Change(
        "gpt2/files/aside",
        "errors do not name the file",
        "            if isinstance(error, OSError):",
        "            if isinstance(error, KeyError):",
        select="full_disk",
    ),
)

# One test, of some seconds: a change for each part of the reading.
_MUTATIONS = (
    _HEAD_NOT_COMPARED,
    _ERRORS_OF_OPENING_PASSED_ON,
    _THE_LAST_OF_TWO_EQUAL_KEYS,
    _TOO_DEEP_FOR_AN_ERROR_OF_ITS_OWN,
    _SHAPES_OF_OTHER_SIZES_NOT_NOTICED,
    Change(
        "gpt2/files/folder",
        "names of shards taken for granted",
        "    for name, shard in places.items():\n        if not isinstance(shard, str) or not"
        " _SHARD.fullmatch(shard):",
        "    for name, shard in places.items():\n        if not shard:",
    ),
)

CHECKPOINTS = {
    "gpt2/files/aside": _ASIDE,
    "gpt2/files/checkpoint": _CHECKPOINT,
    "gpt2/files/config_file": _CONFIG_FILE,
    "gpt2/files/folder": _FOLDER,
    "gpt2/files/json_file": _JSON_FILE,
    "gpt2/files/mutations": _MUTATIONS,
    "gpt2/files/safetensors_file": _SAFETENSORS_FILE,
    "gpt2/files/weights": _WEIGHTS,
}
