"""The adapters hand over what they should, and the record is whole. No work is needed here."""

import json
import re
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from torch import nn

from evaluation.survey import works  # noqa: F401, which declares them
from evaluation.survey.__main__ import RESULTS, in_a_process, line
from evaluation.survey.adapters import packed, renamed, with_call
from evaluation.survey.definitions import SURVEYED, Surveyed
from evaluation.survey.environment import FILES, VERSIONS, File, put_files
from evaluation.survey.second import DERIVED
from evaluation.survey.stubs import stub
from layer_checks import wrong_version

RECORD = json.loads(RESULTS.read_text())


def breaks_the_law(row):
    """Whether something of the law was asked, and does not hold."""
    return any(
        each["kind"] == "law" and not each["held"] and each.get("asked", True)
        for each in row["results"]
    )


READINGS = {"same", "variation", "defect", "does not fit"}


class Packed(nn.Module):
    """Attention with one map for query, key and value, and a layer of dropout."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).movedim(-3, 0).transpose(-3, -2)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.drop(self.out(y.transpose(-3, -2).flatten(-2)))


class TestAdapters:
    def test_packed_weights_are_thirds_and_get_gradients(self):
        torch.manual_seed(0)
        Layer = renamed(Packed, **packed("qkv", "out"))  # noqa: N806
        ours = Layer(6, 2).eval()
        names = {name for name, _ in ours.named_parameters()}
        assert names == {
            f"{each}_proj.{kind}"
            for each in ("query", "key", "value", "output")
            for kind in ("weight", "bias")
        }
        x = torch.randn(2, 3, 6)
        assert torch.equal(ours(x), ours.inner(x))
        with torch.no_grad():
            ours.key_proj.weight.mul_(2)
            theirs = ours.inner.qkv.weight.clone()
            theirs[6:12] *= 2
            ours.inner.qkv.weight.copy_(theirs)
        assert torch.equal(ours(x), ours.inner(x))
        ours(x).sum().backward()
        assert ours.value_proj.weight.grad.abs().sum() > 0
        assert ours.inner.qkv.weight.grad is None

    def test_a_transposed_weight_is_handed_over_transposed(self):
        Layer = renamed(nn.Linear, weight="weight.T", bias="bias")  # noqa: N806
        ours = Layer(2, 3)
        assert ours.weight.shape == (2, 3)
        x = torch.randn(4, 2)
        torch.testing.assert_close(ours(x), x @ ours.weight + ours.bias)

    def test_an_argument_that_a_work_is_not_called_with_is_not_implemented(self):
        layers = [renamed(nn.Identity)(), with_call(nn.Identity, lambda module, x: module(x))()]
        for layer in layers:
            with pytest.raises(NotImplementedError, match="is not called with cache"):
                layer(torch.zeros(1), cache=None)


class TestRunning:
    def test_a_work_that_ends_its_process_is_a_row(self):
        import os

        def ends():
            os._exit(3)

        def runs():
            return torch.nn.functional.gelu

        entries = [
            Surveyed("torch", "gelu", path, build)
            for path, build in (("ends", ends), ("runs", runs))
        ]
        first, second = in_a_process(entries)
        assert first["error"] == "the process ended"
        assert {each["name"] for each in second["results"]} >= {"values"}
        assert line(second).startswith(f"torch {version('torch')}, runs as gelu")

    def test_a_stub_is_imported_where_nothing_is(self, monkeypatch):
        monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
        stub("no_such_package")
        from no_such_package.inner import Thing

        assert isinstance(Thing(3).attribute, object)
        for name in ("no_such_package", "no_such_package.inner"):
            del sys.modules[name]  # other tests rely on its absence


class TestFiles:
    CONTENT = b"answer = 42\n"

    def test_a_file_is_loaded_once_and_known_by_its_digest(self, tmp_path):
        there = tmp_path / "there"
        (there / "owner").mkdir(parents=True)
        (there / "owner/model.py").write_bytes(self.CONTENT)
        files = {"place/model.py": File("owner/model.py", sha256(self.CONTENT).hexdigest())}
        assert put_files(tmp_path / "places", files, root=there.as_uri()) == []
        assert (tmp_path / "places/place/model.py").read_bytes() == self.CONTENT
        (there / "owner/model.py").unlink()
        assert put_files(tmp_path / "places", files, root=there.as_uri()) == []

    def test_a_file_that_cannot_be_loaded_is_named_with_its_place(self, tmp_path):
        files = {"place/model.py": File("model.py", "0" * 64)}
        (line,) = put_files(tmp_path / "places", files, root=tmp_path.as_uri())
        assert line.startswith("model.py: ")
        assert line.endswith(f"put it at {tmp_path / 'places/place/model.py'}")


class TestCited:
    def test_what_a_work_is_cited_for_is_a_known_wrong_version(self):
        for entry in SURVEYED:
            for name in entry.cited_for + entry.known_as:
                assert wrong_version(entry.layer, name).name == name

    @pytest.mark.parametrize(("field", "least"), [("cited_for", 30), ("known_as", 10)])
    def test_five_of_six_works_are_named_for_it(self, field, least):
        ran = [
            row
            for row in RECORD["rows"]
            if "error" not in row
            and (row[field] or (field == "cited_for" and row["reading"] == "defect"))
        ]
        said = [{row["named"], row["and_named"], *row["fails_like"]} for row in ran]
        named = sum(bool(each & set(row[field])) for each, row in zip(said, ran, strict=True))
        assert named >= 5 / 6 * len(ran)
        assert len(ran) >= least


class TestTheRecord:
    def test_it_has_the_layers_that_are_declared(self):
        key = ("work", "layer", "path", "reading", "note", "second")
        recorded = {tuple(row[name] for name in key) for row in RECORD["rows"]}
        assert recorded == {tuple(getattr(entry, name) for name in key) for entry in SURVEYED}

    def test_each_row_is_read_and_each_defect_was_derived_again(self):
        for row in RECORD["rows"]:
            assert row["reading"] in READINGS
            if row["reading"] == "defect":
                assert row["second"] in DERIVED
                assert "error" not in RECORD["second"][row["second"]]

    def test_right_layers_keep_the_law_and_one_in_ten_at_most_does_not_fit(self):
        ran = [row for row in RECORD["rows"] if "error" not in row]
        right = [row for row in ran if row["reading"] == "same"]
        assert len(right) > 40
        assert [row["path"] for row in right if breaks_the_law(row)] == []
        assert sum(row["reading"] == "does not fit" for row in ran) <= len(ran) / 10

    def test_every_work_is_pinned(self):
        pins = Path(RESULTS).with_name("requirements.txt").read_text()
        pinned = set(re.findall(r"^([\w.-]+)==", pins, flags=re.MULTILINE)) | {
            "transformers",
            "torch",
        }
        assert {entry.work for entry in SURVEYED if "/" not in entry.work} <= pinned
        folders = set(VERSIONS) | {name.split("/")[0] for name in FILES}
        assert {entry.place for entry in SURVEYED} - {""} == folders
