"""A picture of the graph in the language of Graphviz. Pure."""

from __future__ import annotations

from agentd.graph.answer import one_line
from agentd.graph.picture import Picture

_FILLS = ("#f6c667", "#bfdcf7", "#d5ecd2", "#e8e2f3")  # by depth


def as_dot(picture: Picture) -> str:
    """A digraph: nodes are filled by depth, arrows as thick as their facts are sure."""
    caption = " · ".join(filter(None, (picture.title, picture.left_out)))
    lines = [
        "digraph agentd {",
        f'  graph [label={_quoted(caption)}, labelloc=t, charset="UTF-8", overlap=false];',
        '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
    ]
    for place, node in enumerate(picture.nodes):
        fill = _FILLS[min(node.depth, len(_FILLS) - 1)]
        told = f"{node.score:.2f}"
        lines.append(
            f'  n{place} [label={_quoted(node.label)}, fillcolor="{fill}", tooltip="{told}"];'
        )
    for arrow in picture.arrows:
        words = _quoted(arrow.predicate.replace("_", " "))
        width = f"{0.5 + 2 * arrow.confidence:.2f}"
        lines.append(f"  n{arrow.source} -> n{arrow.target} [label={words}, penwidth={width}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    r"""A string of the language. A backslash begins an escape there, and `&` an entity of HTML."""
    text = one_line(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
