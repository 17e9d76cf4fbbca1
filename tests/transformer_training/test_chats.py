"""Fine-tuning on chats: what is scored, how rows are packed, and that it is learned."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from transformer_layers import PublishedTokenizer, load_model, load_tokenizer
from transformer_training import chat_batches, chat_with_labels

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# As Qwen 3's: what was thought is written of the last answer alone.
FORGETFUL = TEMPLATE.replace(
    "{{ message.content }}",
    "{% if loop.last and message.role == 'assistant' %}<think>{% endif %}{{ message.content }}",
)
WORDS = ["cat", "dog", "bird", "fish", "tree", "house", "moon", "star", "rain", "snow"]
ANSWERS = ["meow", "woof", "tweet", "blub", "rustle", "creak", "shine", "blink", "drip", "hush"]
CHATS = [
    [{"role": "user", "content": f"what says the {word}?"}, {"role": "assistant", "content": said}]
    for word, said in zip(WORDS, ANSWERS, strict=True)
]


def write_tokenizer(folder: Path, template: str | None = TEMPLATE) -> None:
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    library.train_from_iterator(["what says the cat?", "user", "assistant"] * 3, trainer)
    library.save(str(folder / "tokenizer.json"))
    entries = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}
    entries |= {} if template is None else {"chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(entries))


def tokenizer_of(folder: Path, template: str | None = TEMPLATE) -> PublishedTokenizer:
    write_tokenizer(folder, template)
    tokenizer = load_tokenizer(folder)
    assert isinstance(tokenizer, PublishedTokenizer)
    return tokenizer


@pytest.fixture
def tokenizer(tmp_path: Path) -> PublishedTokenizer:
    return tokenizer_of(tmp_path)


def scored(tokenizer: PublishedTokenizer, chat: Any, **variables: Any) -> str:
    ids, labels = chat_with_labels(tokenizer, chat, **variables)
    assert ids.shape == labels.shape
    assert (labels[labels != -100] == ids[labels != -100]).all()
    return tokenizer.decode(ids[labels != -100])


def test_the_answer_is_scored_with_its_end_and_nothing_else(tokenizer):
    assert scored(tokenizer, CHATS[0]) == "meow<|im_end|>\n"
    ids, _ = chat_with_labels(tokenizer, CHATS[0])
    assert tokenizer.decode(ids) == (
        "<|im_start|>user\nwhat says the cat?<|im_end|>\n<|im_start|>assistant\nmeow<|im_end|>\n"
    )


def test_every_answer_of_a_long_chat_is_scored(tokenizer):
    chat = [{"role": "system", "content": "be short"}, *CHATS[0], *CHATS[1], *CHATS[2][:1]]
    assert scored(tokenizer, chat) == "meow<|im_end|>\nwoof<|im_end|>\n"


def test_a_token_that_joins_a_prompt_with_its_answer_is_told(tmp_path):
    template = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] }}<|im_end|>{% endfor %}"
    template += "{% if add_generation_prompt %}assistant: {% endif %}"
    tokenizer = tokenizer_of(tmp_path, template)
    messages = [{"role": "user", "content": "cat?"}, {"role": "assistant", "content": "the"}]
    with pytest.raises(ValueError, match=r"with '.*assistant: ', and a token joins"):
        chat_with_labels(tokenizer, messages)
    assert scored(tokenizer, [messages[0], messages[1] | {"content": "?"}]) == "?<|im_end|>"


def test_a_template_that_writes_the_past_otherwise_is_told(tmp_path):
    tokenizer = tokenizer_of(tmp_path, FORGETFUL)
    with pytest.raises(ValueError, match="writes the first 2 messages otherwise once the chat goe"):
        chat_with_labels(tokenizer, CHATS[0] + CHATS[1])


@pytest.mark.parametrize(
    ("chats", "options", "said"),
    [
        ([], {}, "chats must hold one chat at least, got none"),
        ([CHATS[0][:1]], {}, "a chat must have an answer, a message of the assistant; got user"),
        ([CHATS[0][1:]], {}, "must not begin with the assistant, to whom nothing was said"),
        ([CHATS[0]], {"seq": 9}, "chats[0] has"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused(tokenizer, chats, options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        chat_batches(tokenizer, chats, **{"seq": 64, "batch": 2} | options)


def llama(folder: Path, dtype: torch.dtype = torch.float64) -> None:
    """A Llama that transformers made, with random weights, and its own tokenizer."""
    write_tokenizer(folder)
    end = load_tokenizer(folder).eos_token
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=None,
    )
    LlamaForCausalLM(config).to(dtype).save_pretrained(folder)


def test_packed_chats_have_the_loss_and_the_gradient_of_each_alone(tmp_path):
    llama(tmp_path)
    model, tokenizer = load_model(tmp_path), load_tokenizer(tmp_path)
    batches = chat_batches(tokenizer, CHATS, seq=100, batch=2)
    rows = sum(len(batch.ids) for batch in batches)
    assert rows < len(CHATS) / 2  # there are several to a row
    total = sum(batch.scored for batch in batches)
    packed = sum(batch.loss(model) * batch.scored for batch in batches) / total
    packed.backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    alone = [chat_with_labels(tokenizer, chat) for chat in CHATS]
    counts = [int((labels != -100).sum()) for _, labels in alone]
    assert sum(counts) == total
    losses = [model.loss(ids[None], labels[None]) for ids, labels in alone]
    expected = sum(n * loss for n, loss in zip(counts, losses, strict=True)) / total
    torch.testing.assert_close(packed, expected, rtol=1e-12, atol=0)
    expected.backward()
    for found, parameter in zip(gradients, model.parameters(), strict=True):
        torch.testing.assert_close(found, parameter.grad, rtol=1e-9, atol=1e-12)


def test_a_llama_of_transformers_learns_ten_chats_and_answers_there_as_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("published").mkdir()
    llama(Path("published"))
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```py\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"chats": CHATS, "lr": 5e-3, "epochs": 60}
    exec(program, names)
    model, tokenizer = names["model"], names["tokenizer"]
    theirs = AutoModelForCausalLM.from_pretrained("tuned")
    their_tokenizer = AutoTokenizer.from_pretrained("tuned")
    for chat, answer in zip(CHATS, ANSWERS, strict=True):
        asked = tokenizer.chat(chat[:1])
        written = model.generate(asked[None], 20, eos_token=tokenizer.eos_token)[0]
        assert tokenizer.decode(written[len(asked) :]) == f"{answer}<|im_end|>"
        given = their_tokenizer.apply_chat_template(
            chat[:1], add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        found = theirs.generate(**given, max_new_tokens=20, do_sample=False)[0]
        assert found.equal(written)


@pytest.mark.parametrize("content", [None, ["meow"]])
def test_an_answer_without_a_text_is_refused(tokenizer, content):
    chat = [CHATS[0][0], {"role": "assistant", "content": content}]
    with pytest.raises(
        TypeError,
        match=re.escape(f"messages[1]: an answer's content must be a text, got {content!r}"),
    ):
        chat_with_labels(tokenizer, chat)


def test_an_answer_may_be_a_call_alone(tokenizer):
    call = {"type": "function", "function": {"name": "bark", "arguments": {}}}
    chat = [CHATS[0][0], {"role": "assistant", "content": None, "tool_calls": [call]}]
    _, labels = chat_with_labels(tokenizer, chat)
    assert (labels != -100).any()
