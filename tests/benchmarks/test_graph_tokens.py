import pytest

from benchmarks.graph_tokens import count_tokens, goals, measured, table


@pytest.fixture(scope="module")
def hundred():
    return measured(100)


def test_the_tokens_are_those_of_cl100k_base():
    assert count_tokens("hello world") == 2
    assert count_tokens("tiktoken is great!") == 6
    assert count_tokens("antidisestablishmentarianism") == 6
    assert count_tokens("2 + 2 = 4") == 7
    assert count_tokens("お誕生日おめでとう") == 9


def test_every_goal_is_met_at_a_hundred_concepts(hundred):
    rows = goals(hundred)
    assert len(rows) == 3
    assert [row.what for row in rows if " | ok |" not in row.as_markdown()] == []


def test_no_form_loses_what_it_says_it_keeps(hundred):
    assert (hundred.concepts, hundred.relations) == (100, 300)
    assert [one.name for one in hundred.forms.values() if one.keeps == "NOT ALL"] == []
    assert sum(one.keeps == "all" for one in hundred.forms.values()) == 3
    assert len(table(hundred).splitlines()) == 4 + 10
