"""Which columns each rank gets of queries, keys and values in one matrix."""

import torch

from transformer_training.plans.cuts import by_matrix, by_rank


def test_each_rank_gets_its_columns_of_each_matrix():
    d, ranks = 12, 3
    packed = torch.randn(5, 3 * d)
    query, key, value = packed.split(d, dim=-1)
    for rank, part in enumerate(by_rank(packed, ranks).chunk(ranks, dim=-1)):
        own = slice(rank * d // ranks, (rank + 1) * d // ranks)
        assert part.equal(torch.cat([query[:, own], key[:, own], value[:, own]], dim=-1))


def test_the_order_is_undone():
    packed = torch.randn(2, 24)
    assert by_matrix(by_rank(packed, 4), 4).equal(packed)
    assert not by_rank(packed, 4).equal(packed)
    assert by_rank(packed, 1).equal(packed)
