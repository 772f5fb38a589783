"""A hook of mkdocs: links out of docs/, to the source, become text on the site, which has no source."""

import posixpath
import re

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_page_markdown(markdown, page, **_):
    folder = posixpath.dirname(page.file.src_uri)

    def text_of(match):
        words, target = match.groups()
        path = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
        if "://" in target or target.startswith("#") or path.startswith("docs/"):
            return match.group(0)
        return f"`{path}`" if words in (path, f"`{path}`") else f"{words} (`{path}`)"

    return _LINK.sub(text_of, markdown)
