"""A hook of mkdocs: anchors as GitHub makes them, and links out of docs/ (the site has no source) as text."""

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


def slug(heading, separator):
    """An anchor as GitHub makes it, so that one link serves there and here."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_config(config, **_):
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config
