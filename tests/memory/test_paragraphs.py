from __future__ import annotations

from agentd.memory.index.chunking.paragraphs import pieces
from agentd.memory.index.chunking.piece import Lines, tokens_in


def cut(text, **options):
    return list(pieces(Lines(text.removesuffix("\n").split("\n")), **options))


def spans(text):
    return [(piece.first + 1, piece.end) for piece in cut(text)]


LONG = "a sentence with a good number of words in it that says one thing"


def test_a_paragraph_and_an_entry_are_a_piece_each():
    text = (
        f"# Boat\n\n{LONG}\n\n- {LONG}\n  and {LONG}\n\n  even here\n- "
        f"{LONG}\n1. {LONG}\n> {LONG}\n"
    )
    assert spans(text) == [(1, 3), (5, 8), (9, 9), (10, 10), (11, 11)]


def test_the_headings_above_are_the_context_unless_they_stand_in_the_text():
    text = f"# Boat\n## Engine\n\n- {LONG}\n- {LONG}\n\n# Car\n\n{LONG}\n\n{LONG}\n"
    assert [piece.context for piece in cut(text)] == ["", "Boat / Engine", "", "Car"]


def test_a_heading_with_nothing_below_is_found_by_itself():
    text = f"# Boat\n## Engine\n## Sails\n\n{LONG}\n\n## End\n"
    assert spans(text) == [(1, 2), (3, 5), (7, 7)]


def test_short_entries_are_joined_up_to_a_few_words():
    text = "# Shop\n\n- milk\n- eggs\n- bread\n\n## Else\n\n- nails\n"
    assert spans(text) == [(1, 5), (7, 9)]
    many = "\n".join("- some thing" for _ in range(40))
    assert all(tokens_in(piece.text) <= 30 for piece in cut(many))
    assert 4 < len(cut(many)) < 40


def test_a_line_that_introduces_a_list_goes_with_its_entries():
    text = f"Packed for the boat:\n- {LONG}\n- {LONG}\n\n{LONG}\n"
    first, second, after = cut(text)
    assert first.text.startswith("Packed for the boat:\n- ")
    assert (first.context, second.context, after.context) == ("", "Packed for the boat", "")


def test_code_and_tables_stay_whole_even_with_blank_lines_in_them():
    text = "```sh\nmake\n\nmake test\n# no heading\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert spans(text) == [(1, 6), (8, 10)]


def test_a_fence_that_is_never_closed_goes_to_the_end():
    assert spans("```\na\n\n# b\n\nc") == [(1, 6)]


def test_front_matter_is_one_piece():
    assert spans(f"---\ntitle: x\n\ntags: y\n---\n{LONG}\n") == [(1, 5), (6, 6)]


def test_a_rule_belongs_to_what_it_follows():
    assert spans(f"{LONG}\n\n---\n\n{LONG}\n") == [(1, 3), (5, 5)]


def test_statements_on_lines_of_their_own_are_pieces_of_their_own():
    text = (
        "The drain in the yard was blocked again today.\nEmil has lost his second tooth while "
        "eating an apple at school.\nMarguerite wants to see the figures before Friday noon.\n"
    )
    assert spans(text) == [(1, 1), (2, 2), (3, 3)]


def test_a_paragraph_that_a_program_has_wrapped_is_one_piece():
    text = (
        "The drain in the yard was blocked again today. We\n"
        "called the landlord, who said that he would come.\n"
        "He did not come. On Friday we tried it ourselves,\n"
        "with success.\n"
    )
    assert spans(text) == [(1, 4)]


def test_a_long_paragraph_is_cut_at_the_ends_of_sentences():
    text = "This sentence is one of very many that all say the same. " * 60
    found = cut(text)
    assert len(found) > 3
    assert all(tokens_in(piece.text) <= 200 for piece in found)
    assert all(piece.text.endswith("same.") for piece in found)
    assert {(piece.first, piece.end) for piece in found} == {(0, 1)}


def test_a_long_table_is_cut_at_rows_and_each_piece_knows_the_header():
    rows = "\n".join(f"| part {n} | costs {n} euros and some cents |" for n in range(60))
    _, *others = cut(f"| name | price |\n|---|---|\n{rows}\n")
    assert others
    assert all(piece.text.startswith("| part") for piece in others)
    assert all("| name | price |" in piece.context for piece in others)


def test_a_long_entry_is_cut_and_each_piece_knows_its_beginning():
    below = "\n".join(f"  - step {n} of the many that this needs to be done" for n in range(40))
    _, *others = cut(f"- Install the pump\n{below}\n")
    assert others
    assert all("Install the pump" in piece.context for piece in others)


def test_a_conversation_has_speakers():
    text = (
        "# 2026-05-08 13:56\n\nConversation between Ann and Bo Berg.\n\n**Ann:** Hi.\n\n"
        "**Bo Berg:** Hello, how are you?\n\n**Ann:** Fine.\n"
    )
    assert [piece.speaker for piece in cut(text)] == ["", "Ann", "Bo Berg", "Ann"]
    assert [piece.context for piece in cut(text)] == ["", "", "", ""]


def test_other_spellings_of_speakers_are_known():
    for line in ("{}: so it is", "**{}**: so it is", "- {}: so it is", "[10:32] {}: so it is"):
        text = "\n\n".join(line.format(name) for name in ("Ann", "Bo", "Ann"))
        assert [piece.speaker for piece in cut(text)] == ["Ann", "Bo", "Ann"]


def test_labels_are_no_speakers():
    text = f"## People\n- Ann: {LONG}\n- Bo: {LONG}\n- {LONG}\n"
    assert {piece.speaker for piece in cut(text)} == {""}
    few = f"Note: {LONG}\n\n{LONG}\n\n{LONG}\n\n{LONG}\n\n{LONG}\n\nNote: {LONG}\n"
    assert {piece.speaker for piece in cut(few)} == {""}


def test_speakers_are_never_joined():
    text = "Ann: Yes.\n\nBo: No.\n\nAnn: Yes!\n"
    assert spans(text) == [(1, 1), (3, 3), (5, 5)]
