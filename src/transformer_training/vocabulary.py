"""What a run asks of a tokenizer, its own or that of a published model."""

from transformer_layers import PublishedTokenizer, Tokenizer
from transformer_layers.tokenizers.published import FILES

AnyTokenizer = Tokenizer | PublishedTokenizer

PAIR = ("merges.txt", "vocab.json")


def begin_of(tokenizer: AnyTokenizer) -> list[int]:
    """The tokens that stand before a text, such as Llama's; none for GPT-2."""
    if isinstance(tokenizer, Tokenizer):
        return []
    around: list[int] = tokenizer.encode("").tolist()
    return around[:-1] if around[-1:] == [tokenizer.eos_token] else around


def end_of(tokenizer: AnyTokenizer) -> int:
    """The token that ends a text.

    Raises:
        ValueError: If there is none.
    """
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.end_of_text
    if tokenizer.eos_token is None:
        raise ValueError("tokenizer_config.json names no eos_token, which ends a text")
    return tokenizer.eos_token


def tokens_of(tokenizer: AnyTokenizer, text: str) -> list[int]:
    """The tokens of a piece of a text, with nothing around them."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.encode(text).tolist()
    return tokenizer.encode(text, add_special_tokens=False).tolist()


def files_of(tokenizer: AnyTokenizer) -> tuple[str, ...]:
    """The names of the files that say which tokens there are; a published one may lack some."""
    return PAIR if isinstance(tokenizer, Tokenizer) else FILES
