"""The process that parses one page: `python -m agentd.interfaces.web.reader_main`.

Reads a JSON line of {url, charset, seconds} and then the page from standard input, and writes
{title, text} as JSON, the text as markdown.
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
_LONGEST_TEXT = 1_000_000  # characters; the model gets far fewer
_LINKS = 40  # links that are listed besides those in the text
_WORDS = 100  # characters of a link's text


def main() -> None:
    """Parse one page. Ends with a code other than 0 and without output if the page cannot be
    parsed.
    """
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
    """Return the title and the text of a page. Links are absolute; those that are not in the text
    are listed after it, up to `_LINKS`.
    """
    try:
        parser = pages.HTMLParser(encoding="utf-8")
        tree = pages.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except etree.ParserError:  # an empty page
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
    # If no article is found, take all text of the page.
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
