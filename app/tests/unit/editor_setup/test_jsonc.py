"""JSON with comments is changed in one place, and stays as it is everywhere else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast_app.editor_setup.jsonc import read_jsonc, with_member, without_member

PATH = ("agent_servers", "weather")
VALUE: Any = {"command": "/bin/holdfast", "args": ["run", "a b.py"], "env": {}}

ZED = """\
// Zed settings
{
  "theme": "One Dark", // the best
  /* keep
     this */
  "agent_servers": {
    "mine": { "command": "x" }, // mine
  },
  "vim_mode": true,
}
"""


def test_a_member_is_added_and_every_comment_and_comma_stays() -> None:
    assert with_member(ZED, PATH, VALUE) == ZED.replace(
        '    "mine": { "command": "x" }, // mine\n',
        '    "mine": { "command": "x" }, // mine\n'
        '    "weather": {\n'
        '      "command": "/bin/holdfast",\n'
        '      "args": ["run", "a b.py"],\n'
        '      "env": {}\n'
        "    },\n",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "agent_servers": {\n    "weather": 1\n  }\n}\n'),
        ("// mine\n", '// mine\n{\n  "agent_servers": {\n    "weather": 1\n  }\n}\n'),
        ('{"a": 1}', '{"a": 1,\n  "agent_servers": {\n    "weather": 1\n  }\n}'),
        ("{\n}", '{\n  "agent_servers": {\n    "weather": 1\n  }\n}'),
        ('{\n\t"a": 1 // one\n}', '{\n\t"a": 1, // one\n\t"agent_servers": {\n\t\t"weather": 1\n\t}\n}'),
        (
            '{\r\n    "a": 1\r\n}\r\n',
            '{\r\n    "a": 1,\r\n    "agent_servers": {\r\n        "weather": 1\r\n    }\r\n}\r\n',
        ),
        ('{"agent_servers": {"weather": [1, /* x */ 2]}}', '{"agent_servers": {"weather": 1}}'),
        ("\ufeff{}", '\ufeff{\n  "agent_servers": {\n    "weather": 1\n  }\n}'),
    ],
)
def test_files_of_all_styles_keep_theirs(before: str, after: str) -> None:
    assert with_member(before, PATH, 1) == after


def test_what_was_added_goes_again_without_a_trace() -> None:
    for text in (ZED, '{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "agent_servers": {\n    "b": 2\n  }\n}\n'):
        added = with_member(text, PATH, VALUE)
        assert read_jsonc(without_member(added, PATH)).value == read_jsonc(text).value
        assert without_member(text, PATH) == text
    added = with_member('{\n  "a": 1\n}\n', PATH, VALUE)
    assert without_member(added, PATH) == '{\n  "a": 1\n}\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": }', "line 1, column 7"),
        ('{"a": 1\n "b": 2}', "line 2, column 2"),
        ('{"a": 1} x', "follows behind"),
        ("[1]", "the whole file"),
        ('{"agent_servers": 3}', "`agent_servers`"),
        ('{"a": "open', "not closed"),
        ("{" * 300, "a name in quotes"),
        ("[" * 300, "nested too deeply"),
        ('{"a" 1}', "a colon"),
        ("{'a': 1}", "a name in quotes"),
        ("/* open", "a value is expected"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        with_member(text, PATH, 1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
COMMENTS = st.sampled_from(["", " ", "\n", "// one\n", '/* { " } */', "\t// }\n\n"])


@given(
    members=st.dictionaries(st.text(), VALUES, max_size=4),
    name=st.text(),
    value=VALUES,
    spaces=st.lists(COMMENTS, min_size=12, max_size=12),
    trailing=st.booleans(),
)
@example(members={"": 0}, name="", value=[[]], spaces=["// one\n"] * 12, trailing=True)
def test_whatever_stands_there_is_as_before_beside_what_was_set(
    members: dict[str, Any], name: str, value: Any, spaces: list[str], trailing: bool
) -> None:
    space = iter(spaces)
    pairs = [f"{json.dumps(key)}{next(space)}:{next(space)}{json.dumps(of)}" for key, of in members.items()]
    text = f"{spaces[-1]}{{{spaces[-2]}{','.join(pairs)}{',' if trailing and pairs else ''}{spaces[-3]}}}{spaces[-4]}"
    changed = with_member(text, [name], value)
    assert read_jsonc(changed).value == {**members, name: value}
    for comment in re.findall(r"// one|/\* \{ \" \} \*/", text) if name not in members else ():
        assert comment in changed
    expected = {key: of for key, of in members.items() if key != name}
    assert read_jsonc(without_member(changed, [name])).value == expected
