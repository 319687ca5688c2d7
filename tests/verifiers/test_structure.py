"""Headings, lists, tables, code blocks, sections."""

from __future__ import annotations

import warnings

import pytest
from tests.verifiers.conftest import check, met, value

from rubricate.errors import VerifierError
from rubricate.judges.verifiers.codeparse import fault_in
from rubricate.judges.verifiers.markdown import Heading, fences, headings, items, tables

DOCUMENT = """# Soup

## 1. Ingredients

- carrots
* onions
+ leeks
  - white part
• salt

Method
------

1. Chop.
2) Boil.
3.5 cups of water go in.
（3）Rest.

```markdown
# not a heading
- not an item
| a | b |
|---|---|
```

| Name | **Amount** |
|:-----|-------:|
| a \\| b | 1 |
| c | 2 |

***
"""


def test_headings() -> None:
    assert headings(DOCUMENT) == [Heading(1, "Soup"), Heading(2, "1. Ingredients"), Heading(2, "Method")]
    assert met("headings", DOCUMENT, min=3, max=3)
    assert met("headings", DOCUMENT, level=2, min=2, max=2)
    assert met("headings", DOCUMENT, titles=["ingredients", "METHOD:"])
    missing = check("headings", DOCUMENT, titles=["Method", "Serving"])
    assert not missing.met and "'Serving'" in missing.reason
    assert not met("headings", "#hashtag and text")
    assert not met("headings", "**Bold line**")
    assert met("headings", "**Bold line**", bold=True)
    assert met("headings", "## 材料\n...\n## 作り方 ##", titles=["材料", "作り方"])


@pytest.mark.parametrize("text", ["a | b\n---", "- item\n---", "> quote\n---", "\n---", "---\n---", "text\n\n==="])
def test_rules_are_not_underlines(text: str) -> None:
    assert headings(text) == []


def test_list_items() -> None:
    assert [item.text for item in items(DOCUMENT) if item.number is None] == [
        "carrots",
        "onions",
        "leeks",
        "white part",
        "salt",
    ]
    assert [item.number for item in items(DOCUMENT) if item.number is not None] == [1, 2, 3]
    assert value("bullets", DOCUMENT) == 5
    assert value("bullets", DOCUMENT, top_level=True) == 4
    assert value("numbered", DOCUMENT) == 3
    assert met(
        "numbered", "1. Rinse the rice.\n3.5 cups of water go in.\n2. Boil.\n3. Rest, covered.", min=3, max=3
    )
    assert value("bullets", "* * *\n---\n- \n*emphasis* here\n-5 degrees", min=0) == 0
    assert value("bullets", "・りんご\n・みかん", min=0) == 2
    assert value("numbered", "１．りんご\n2、みかん\r\n3. ", min=0) == 2


def test_tables() -> None:
    found = tables(DOCUMENT)
    assert len(found) == 1
    assert found[0].header == ("Name", "**Amount**")
    assert found[0].rows == (("a | b", "1"), ("c", "2"))
    assert met("table", DOCUMENT, columns=["name", "Amount"], min_rows=2)
    assert not met("table", DOCUMENT, min_rows=3)
    assert not met("table", DOCUMENT, columns=["Price"])
    assert not met("table", DOCUMENT, min=2)
    assert met("table", "a|b\n-|-\n1|2")
    assert not met("table", "a|b\n-|-|-\n1|2")
    assert not met("table", "a|b\n1|2")
    assert not met("table", "| a | b |\n|---|---|")
    assert met("table", "no table", max=0, min=0)


def test_fences() -> None:
    text = (
        "- item\n\n  ```python\n  if x:\n      y()\n  ```\n\n~~~\n```\n~~~\n"
        "````md\n```\n````\n``` inline ``` text\n```js {1}\nopen"
    )
    found = fences(text)
    assert [(fence.language, fence.body, fence.closed) for fence in found] == [
        ("python", "if x:\n    y()", True),
        ("", "```", True),
        ("md", "```", True),
        ("js", "open", False),
    ]
    assert fences("> ```\n> quoted\n> ```")[0].body == "quoted"
    assert fences("```\r\na\r\n```\r\n")[0].body == "a"


@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("python", "def f(x):\n    return x", "def f(x)\n    return x"),
        ("py", "print('\\d')", "print("),
        ("json", '{"a": [1, 2]}', "{'a': 1}"),
        ("jsonl", '{"a": 1}\n\n{"a": 2}', '{"a": 1}\n{'),
        ("toml", "a = 1\n[b]\nc = 'x'", "a = = 1"),
        ("yaml", "a: 1\nb:\n  - c", "a: [1"),
        ("yml", "a: *x\n" if False else "a: &x 1\nb: *x", "a: 1\n\tb: 2"),
    ],
)
def test_code_must_parse(language: str, good: str, bad: str) -> None:
    assert met("code", f"```{language}\n{good}\n```", language=language)
    broken = check("code", f"```{language}\n{bad}\n```", language=language)
    assert not broken.met and "code block 1" in broken.reason
    assert met("code", f"```{language}\n{bad}\n```", language=language, parse=False)


def test_code_in_other_languages_needs_only_its_fences() -> None:
    assert met("code", "```rust\nfn main( {\n```", language="rs")
    assert met("code", "```\nanything (\n```")
    assert not met("code", "```rust\nfn main() {}\n", language="rust")
    assert not met("code", "no code")
    assert not met("code", "```js\n1\n```", language="python")
    assert met("code", "no code", min=0, max=0)


EXHAUSTING = [
    "-" * 50_000 + "1",
    "(" * 5_000,
    "x = " + "[" * 900 + "]" * 900,
    "a\0b",
    "\ud800",
    "not " * 50_000 + "1",
    "lambda:" * 5_000 + "1",
    "a" + ".b" * 50_000,
    "f(" * 90 + ")" * 90,
    "1" + "+1" * 50_000,
    "x if y else " * 5_000 + "1",
]


@pytest.mark.parametrize("code", EXHAUSTING)
def test_code_that_exhausts_the_parser_is_a_verdict_and_not_a_crash(code: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for language in ("python", "json", "toml", "yaml"):
            assert fault_in(language, code) is None or isinstance(fault_in(language, code), str)


def test_sections() -> None:
    text = "Morning: ***very*** cold.\n***\nNoon: mild.\n  ***  \nNight: rain.\n***\n\n"
    assert value("sections", text, min=0) == 3
    assert value("sections", "a\n---\n---\nb", min=0, divider="---") == 2
    assert value("sections", "a\n```\n***\n```\nb", min=0) == 1
    assert value("sections", "", min=0) == 0
    with pytest.raises(VerifierError, match="argument 'divider'"):
        check("sections", "a", min=1, divider="a\nb")
