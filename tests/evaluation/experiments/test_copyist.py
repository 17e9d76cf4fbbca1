"""Sheets are what the module says, nothing held out stands on one, and a setting finds its row."""

from dataclasses import asdict

import pytest
import torch

from evaluation.experiments.copyist import Setting, held_out, loss, of, sheet, trained
from transformer_training.toy_language import decode, kind


@pytest.fixture(scope="module")
def right():
    near = kind("near")
    return {decode(row[:5]): decode(row[5:6]) for row in near.texts}


def test_the_first_eighth_of_a_sheet_has_the_wrong_verb(right):
    torch.manual_seed(0)
    rows = sheet(64)
    found = [decode(row[5:6]) == right[decode(row[:5])] for row in rows]
    assert found == 8 * [False] + 56 * [True]


def test_no_beginning_that_is_held_out_stands_on_a_sheet(right):
    torch.manual_seed(0)
    asked = {decode(row[:5]) for row in held_out()}
    read = {decode(row[:5]) for row in sheet(5000)}
    assert not asked & read
    assert asked | read == set(right)
    assert all(decode(row[5:6]) == right[decode(row[:5])] for row in held_out())


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_learning_lowers_the_loss_and_dropout_is_off_where_it_is_measured(norm):
    run = trained(Setting(steps=20, dropout=0.3, norm=norm))
    assert run.held_out[-1] < run.held_out[0] - 1
    assert run.held_out[-1] == loss(run.model, held_out()) == loss(run.model.train(), held_out())
    assert run.model.training


def test_a_setting_finds_its_row_and_a_missing_one_is_named():
    rows = [{**asdict(Setting(decay=decay)), "right": [decay]} for decay in (0.0, 0.1)]
    assert of(rows, Setting(decay=0.1))["right"] == [0.1]
    with pytest.raises(ValueError, match=r"^no row was recorded for Setting\(rate=0.5, "):
        of(rows, Setting(rate=0.5))
