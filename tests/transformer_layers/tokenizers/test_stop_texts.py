"""Texts that end what a model writes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from tests.transformer_layers.models.gpt2.models import random_ids
from transformer_layers import GPT2, GPT2Config, stop_texts, train_tokenizer

TOKENIZER = train_tokenizer(["low lower lowest, é and 語"], vocab_size=270)


@given(st.text("low erst,é語", max_size=20), st.lists(st.text("lowé語 ", min_size=1), min_size=1))
def test_a_text_is_found_with_the_token_that_makes_it_whole(text, stops):
    ends, ids = stop_texts(TOKENIZER, stops), TOKENIZER.encode(text).tolist()
    found = [ends(ids[:n]) for n in range(1, len(ids) + 1)]
    written = [TOKENIZER.decode(torch.tensor(ids[:n])) for n in range(1, len(ids) + 1)]
    assert found == [any(stop in each for stop in stops) for each in written]
    assert any(found) == (ids != [] and any(stop in text for stop in stops))


def test_a_model_stops_where_the_text_is_written():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=TOKENIZER.vocab_size, n_positions=32, n_embd=12, n_layer=1)
    model = GPT2(GPT2Config(**{**vars(config), "n_head": 3})).double().eval()
    torch.nn.init.normal_(model.wpe.weight, std=3.0)
    ids = random_ids(2, 3)
    whole = [TOKENIZER.decode(row[3:]) for row in model.generate(ids, 20)]
    stop = whole[0][3:5]
    found = model.generate(list(ids), 20, stop=stop_texts(TOKENIZER, [stop]))
    texts = [TOKENIZER.decode(row[3:]) for row in found]
    assert texts[0].index(stop) + len(stop) == len(texts[0]) < len(whole[0])
    for text, longer in zip(texts, whole, strict=True):
        assert longer.startswith(text)
        assert (text == longer) == (stop not in longer[:-1])


def test_the_tokenizers_of_transformers_do_as_well():
    theirs = PreTrainedTokenizerFast(tokenizer_object=TOKENIZER._library)
    ids = TOKENIZER.encode("lowlow").tolist()
    ends = stop_texts(theirs, ["wl"])
    assert [ends(ids[:1]), ends(ids)] == [False, True]


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (".", TypeError, r"^texts must be several texts, got one str, '\.'; put it into a list$"),
        ([".", 3], TypeError, r"^texts\[1\] must be a str, got 3 of type int$"),
        ([], ValueError, r"^texts must be a text or several, .*, got \[\]$"),
    ],
)
def test_errors_of_texts(texts, error, message):
    with pytest.raises(error, match=message):
        stop_texts(TOKENIZER, texts)
