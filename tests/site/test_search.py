"""What readers ask for, and the place that must come first; all of it without a server."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("site")

API = "reference/api.html#transformer_layers"
# Each question with the page and the section, claim or name that answers it.
QUESTIONS = {
    "why sqrt d_k": "attention/scaled_dot_product_attention.html#why-divide",
    "kv cache": "gpt2/generation.html#without-reading-everything-again",
    "weight tying": "gpt2/model_design.html#one-matrix-twice",
    "pre-norm": "transformers/norm_placement.html",
    "layer norm eps": "normalization/layer_normalization.html",
    "bpe tokenizer": "reference/glossary.html#term-byte-pair-encoding",
    "Claim B130": "reference/published_bugs.html#claim-b130",
    "b130": "reference/published_bugs.html#claim-b130",
    "ε": "normalization/layer_normalization.html#where-stands",
    "RMSNorm": f"{API}.RMSNorm",
    "LayerNorm": "normalization/layer_normalization.html",
    "softmax temperature": "reference/glossary.html#term-temperature",
    "top-p": "reference/glossary.html#term-nucleus",
    "causal mask": "attention/masks.html",
    "padding mask": "attention/masks.html#padding",
    "fully masked row": "attention/masks.html",
    "dropout": "normalization/dropout.html",
    "unbiased variance": "reference/published_bugs.html#a-running-variance-a-quarter-too-small",
    "multi-head attention": "attention/multi_head_attention.html",
    "multihead": f"{API}.MultiHeadAttention",
    "number of parameters": "gpt2/model_design.html#where-the-parameters-sit",
    "residual scaling": "feed_forward/residual_connections.html#what-gpt-2-does",
    "initialization": "feed_forward/residual_connections.html",
    "skip connection": "feed_forward/residual_connections.html",
    "positional encoding": "transformers/positions.html",
    "Conv1D": "feed_forward/conv1d.html",
    "load weights": "gpt2/loading_weights.html",
    "L1 and L2": "normalization/penalties.html",
    "weight decay": "normalization/penalties.html",
    "decoupled weight decay": "normalization/penalties.html#weight-decay",
    "AdamW": "normalization/penalties.html#weight-decay",
    "lasso": "normalization/penalties.html",
    "encoder layer": "transformers/encoder_layer.html",
    "loss shifted": "gpt2/model_design.html#the-loss-that-looks-like-success",
    "tanh gelu": f"{API}.gelu_tanh",
    "nanoGPT gelu bug": "gpt2/equality.html#a-bug-leaves-the-noise",
    "scaled_dot_product_attention": f"{API}.scaled_dot_product_attention",
    "int8": "reference/speed.html#ready-for-inference",
    "how to read a proof": "how_to_read.html#proofs-are-folded",
    "attention complexity": "attention/scaled_dot_product_attention.html",
}


@pytest.fixture
def page(browser, html):
    """A chapter, opened from its file."""
    context = browser.new_context()
    page = context.new_page()
    page.goto((html / "normalization" / "dropout.html").as_uri())
    yield page
    context.close()


def test_forty_questions_lead_to_their_places(page, html):
    assert len(QUESTIONS) >= 40
    found = {
        question: (page.evaluate("(question) => bookSearch(question)", question) or [{}])[0]
        for question in QUESTIONS
    }
    root = html.as_uri() + "/"
    first = {
        question: entry.get("address", "").removeprefix(root) for question, entry in found.items()
    }
    assert first == QUESTIONS


def test_what_is_found_is_there(pages, page, html):
    root = html.as_uri() + "/"
    for question in QUESTIONS:
        for entry in page.evaluate("(question) => bookSearch(question)", question):
            name, _, anchor = entry["address"].removeprefix(root).partition("#")
            assert name in pages, entry
            assert not anchor or pages[name].find(id=anchor), entry


def test_the_dialog_shows_excerpts_and_leads_there(page):
    loaded = "() => Boolean(document.querySelector('script[src*=verified_book_search_data]'))"
    assert not page.evaluate(loaded)
    page.keyboard.press("Control+k")
    field = page.locator("#pst-search-dialog input[type=search]")
    expect(field).to_be_focused()
    field.fill("kv cache")
    results = page.locator("#pst-search-dialog ol.book-search > li")
    expect(results.first).to_contain_text("Without reading everything again")
    expect(results.first.locator("p")).to_contain_text("keys and values")
    expect(page.get_by_role("status")).to_contain_text("places")
    field.press("Enter")
    page.wait_for_url("**/gpt2/generation.html#without-reading-everything-again")


def test_nothing_found_is_said(page):
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input[type=search]").fill("zyxwv")
    expect(page.get_by_role("status")).to_have_text("Nothing is found.")


def test_the_page_of_the_search_answers_its_address(page, html):
    page.goto((html / "search.html").as_uri() + "?q=kv+cache")
    results = page.locator("ol.book-search:visible > li")
    expect(results.first).to_contain_text("Without reading everything again")
