"""The process that takes a page apart: `python -m agentd.interfaces.web.reader_main`, one page each.

It reads a line of {url, charset, seconds} and the page behind it, and writes {title, text}, the text as
markdown.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator

import trafilatura
from lxml import etree
from lxml import html as pages

_MEMORY = 1 << 30  # bytes
_LONGEST_TITLE = 300
_LONGEST_TEXT = 1_000_000  # characters, of which models are shown far fewer
_LINKS = 40  # that are told besides those in the text
_WORDS = 100  # characters of one


def main() -> None:
    """Answer once. Ends with another code than 0, and no answer, for what cannot be read."""
    order = json.loads(sys.stdin.buffer.readline())
    seconds = int(order["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    page = sys.stdin.buffer.read().decode(order["charset"], "replace")
    title, text = read(page.removeprefix("\ufeff"), order["url"])
    answer = json.dumps({"title": title, "text": text[:_LONGEST_TEXT]}, ensure_ascii=False)
    sys.stdout.buffer.write(answer.encode("utf-8", "replace"))


def read(text: str, url: str) -> tuple[str, str]:
    """Title and text of a page. Links are whole addresses; those that are not in its text stand behind it."""
    try:
        parser = pages.HTMLParser(encoding="utf-8")
        tree = pages.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except etree.ParserError:  # nothing is there
        return "", ""
    title = " ".join((tree.findtext(".//title") or "").split())[:_LONGEST_TITLE]
    tree.make_links_absolute(url, handle_failures="ignore")
    links = dict(_links(tree))  # before the text is looked for, which changes the tree
    found = trafilatura.extract(
        tree,
        url=url,
        output_format="markdown",
        include_links=True,
        include_tables=True,
        include_comments=False,
        favor_recall=True,
    )
    # Where it finds no article, all words that there are.
    found = found or trafilatura.html2txt(tree)
    others = [
        f"- [{words}]({place})" for place, words in links.items() if f"({place})" not in found
    ]
    listed = "\n".join(others[:_LINKS])
    return title, f"{found}\n\nLinks:\n{listed}" if listed else found


def _links(tree: pages.HtmlElement) -> Iterator[tuple[str, str]]:
    for link in tree.iter("a"):
        place = (link.get("href") or "").partition("#")[0].strip()
        words = " ".join(link.text_content().split())[:_WORDS]
        if place.startswith(("http://", "https://")) and words:
            yield place, words.replace("[", "(").replace("]", ")")


if __name__ == "__main__":
    main()
