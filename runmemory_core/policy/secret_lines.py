"""Named values in lines: raw headers, YAML, TOML, and the arguments of a command that a text shows.

Belongs here: texts that are such lines throughout, and flags. Does not belong here: pairs without blanks, such as
queries and dotenv lines (`secret_pairs`), and lists of arguments (`secret_shapes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runmemory_core.policy.secret_formats import Span, is_template
from runmemory_core.policy.secret_names import Secrecy, secrecy
from runmemory_core.policy.secret_pairs import is_code, is_secret
from runmemory_core.policy.secret_shapes import SAYS_HOW

_NAMED = (
    r"""[ \t]{0,64}+(?:-[ \t]{1,8}+)?["']?(?P<name>[A-Za-z][\w.\-]{1,63}+)["']?[ \t]{0,8}+(?P<sign>[:=])"""
)
# Only what could be a name, so that a line that is none is given up at its first blank.
_LINE_NAMES = tuple(
    re.compile(rf"""{begin}[ \t\-"']{{0,64}}+([^ \t\r\n\0:="']{{2,64}}+)["' \t]{{0,9}}+[:=][ \t]""")
    for begin in (r"\n", r"\0")
)
_LINE = re.compile(rf"""{_NAMED}[ \t]++(?P<scheme>(?:Bearer|Basic|Token)[ \t]++)?(?P<value>[^\r\n]*+)\r?""")
# What else stands in a configuration: comments, sections, items and marks of YAML.
_OTHER_LINES = ("#", "[", "-")
_GOES_ON = (",", ";", "{", "(", "[", "|", ">", "\\")
_QUOTE_BEGINS = re.compile(r"""[A-Za-z]?["'`]""")
_HEADERS = frozenset({"cookie", "authorization"})
_TYPES = frozenset(
    {"str", "string", "int", "bytes", "bool", "any", "object", "text", "password", "optional", "required"}
)
_WHOLE_FLAG = re.compile(r"\0--?([A-Za-z][\w\-]{1,63}+)(?=\0)")
_QUOTED = re.compile(r"""(?:"[^"]{1,2000}+"|'[^']{1,2000}+')(?:[ \t]{1,8}#.*)?""")
_WORD = re.compile(r"[A-Za-z_\-]{1,64}+")
_FLAG_VALUE = re.compile(
    r"""--(?P<name>[a-z][\w\-]{1,63}+)[ \t]{1,8}+(?P<value>"[^"\n]{0,256}"|'[^'\n]{0,256}'|[^\s"'\-][^\s"']*+)"""
)
_LOGINS = tuple(
    re.compile(rf"""{flag}[ \t=]{{0,8}}+["']?[^\s:"'$]{{1,64}}+:(?P<value>[^\s"'$]{{1,256}}+)""")
    for flag in (" -u", " --user")
)


def find_line_named(text: str) -> Iterator[int]:
    """Positions of lines that begin with a name that is secret, and of flags: quick, and more than will be removed."""
    bounded = f"\0{text}\0"
    harmless: set[str] = set()
    for pattern in _LINE_NAMES if ": " in text or " = " in text else ():
        for match in pattern.finditer(bounded):
            name = match[1]
            if name in harmless:
                continue
            if secrecy(name):
                yield match.start(1) - 1
            else:
                harmless.add(name)
    if "\0-" in bounded:
        yield from (match.start() for match in _WHOLE_FLAG.finditer(bounded) if secrecy(match[1]))
    for start, _ in find_arguments(text):
        yield start


def find_lines(text: str) -> list[Span]:
    """Values in a text each line of which is a header, or each of which could stand in a configuration."""
    spans: list[Span] = []
    lines = text.split("\n")
    is_alone = sum(map(bool, lines)) == 1
    start = 0
    for line in lines:
        if pair := _LINE.fullmatch(line):
            if _is_line_secret(pair["name"], pair["sign"], pair["value"].strip(), is_alone=is_alone):
                spans.append(
                    (start + pair.start("value"), start + len(pair["value"].rstrip()) + pair.start("value"))
                )
        elif not _is_between(line.strip()):
            return []
        start += len(line) + 1
    return spans


def find_arguments(text: str) -> Iterator[Span]:
    """Values that follow a flag such as `--password`, and logins of curl."""
    if "--" in text:
        for match in _FLAG_VALUE.finditer(text):
            value = match["value"].strip("\"'")
            # A word is part of the sentence: "pass --token to the command".
            if not match["value"].isalpha() and is_secret(match["name"], value):
                yield match.span("value")
    if "curl " in text:
        for pattern in _LOGINS:
            for match in pattern.finditer(text):
                if not match["value"].isdigit() and not is_template(match["value"]):
                    yield match.span("value")


def _is_between(line: str) -> bool:
    return not line or line.startswith(_OTHER_LINES) or line.endswith(":") or "HTTP/" in line


def _is_line_secret(name: str, sign: str, value: str, *, is_alone: bool) -> bool:
    """Whether the rest of a line is a secret, not a sentence, a type or a piece of a program."""
    bare = value.strip("\"'")
    if not is_secret(name, bare) or bare.lower() in _TYPES:
        return False
    if "-" in name or name.lower() in _HEADERS:
        is_program = value.endswith((",", "]")) or _QUOTE_BEGINS.match(value)
        return sign == ":" and not is_program
    if _QUOTED.fullmatch(value):
        return True
    if sign == "=" or value.endswith(_GOES_ON) or " " in value or is_code(name, value, is_alone=False):
        return False
    if _WORD.fullmatch(value) and (is_alone or secrecy(name) is Secrecy.STRINGS):
        return False
    return value.lower() not in SAYS_HOW
