"""How secrets look: the rules by which `redact` finds them.

A secret is known by its own form (`ghp_…`, `AKIA…`, a JWT), by a form around it (`Authorization:`, `sshpass -p`), or by
the name before it (`password = …`, `"apiKey": "…"`). Each pattern takes time that is linear in the text, whatever the
text is: what may repeat has an end or cannot be matched in two ways.
"""

from __future__ import annotations

import re
from base64 import b64decode
from functools import lru_cache
from typing import NamedTuple


class SecretRule(NamedTuple):
    """A secret of one kind.

    A text that has none of the hints, in lower case, has no such secret. Group 1 of the pattern, if there is one, is
    the secret; what stands around it stays.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(kind: str, hints: str, pattern: str) -> SecretRule:
    return SecretRule(kind, tuple(hints.split()), re.compile(pattern))


_START = r"(?<![A-Za-z0-9])"
"""Where a word begins; an underscore may stand before it, as in `KEY_AKIA…`."""

VALUE = r"[^\s\"'`,;&|<>(){}\[\]$\\]"
"""A character of a value that is not quoted."""

_PREFIXES = (
    *("lin_api_", "lin_oauth_", "r8_", "shpat_", "shpca_", "shppa_", "shpss_", "glc_", "glsa_", "ntn_", "sbp_", "nfp_"),
    *("pscale_tkn_", "pscale_pw_", "PMAK-", "rubygems_", "sntrys_", "sntryu_", "figd_", "ATATT3", "pplx-", "tvly-"),
    *("lsv2_", "GOCSPX-", "CCIPAT_", "bkua_", "dckr_pat_", "NRAK-", "HRKU-", "fo1_", "gsk_", "xai-", "whsec_", "dapi"),
    *("sq0atp-", "sq0csp-", "glptt-", "gldt-", "glrt-", "tskey-", "phx_", "key-", "e2b_", "csk-"),
)
"""What the keys of many services begin with."""

FORMS = (
    _rule(
        "private key",
        "-----begin",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^-]|-(?!----))*+-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,})++)",
    ),
    _rule("JWT", "eyj", rf"{_START}eyJ[\w-]{{8,500}}\.eyJ[\w-]{{8,9999}}\.[\w-]*"),
    _rule("API key", "sk- sk_ rk_", rf"{_START}(?:sk|rk)[-_](?=[\w-]{{0,80}}\d)[A-Za-z0-9][\w-]{{18,}}"),
    _rule("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_START}gh[pousr]_[A-Za-z0-9]{{30,}}"),
    _rule("GitHub token", "github_pat_", rf"{_START}github_pat_\w{{40,}}"),
    _rule("GitLab token", "glpat-", rf"{_START}glpat-[\w-]{{20,}}"),
    _rule("AWS key", "akia asia", rf"{_START}(?:AKIA|ASIA)[0-9A-Z]{{16}}(?![A-Za-z0-9])"),
    _rule("Google key", "aiza", rf"{_START}AIza[\w-]{{35}}"),
    _rule("Google token", "ya29.", rf"{_START}ya29\.[\w-]{{20,}}"),
    _rule("Slack token", "xox xapp-", rf"{_START}(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{{10,}}"),
    _rule("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/services/([\w/]{20,})"),
    _rule("Discord webhook", "/webhooks/", r"/api/webhooks/\d+/([\w-]{20,})"),
    _rule("npm token", "npm_", rf"{_START}npm_[A-Za-z0-9]{{36}}"),
    _rule("PyPI token", "pypi-", rf"{_START}pypi-[\w-]{{50,}}"),
    _rule("Holdfast token", "hf_", rf"{_START}hf_(?=[A-Za-z0-9]*[_-])[\w-]{{43}}(?![\w-])"),
    _rule("Hugging Face token", "hf_", rf"{_START}hf_[A-Za-z0-9]{{30,}}"),
    _rule("SendGrid key", "sg.", rf"{_START}SG\.[\w-]{{16,}}\.[\w-]{{16,}}"),
    _rule("DigitalOcean token", "_v1_", rf"{_START}do[opr]_v1_[a-f0-9]{{64}}"),
    _rule("Vault token", "hvs.", rf"{_START}hvs\.[\w-]{{20,}}"),
    _rule("age key", "age-secret-key-", rf"{_START}AGE-SECRET-KEY-1[0-9A-Z]{{50,}}"),
    _rule("Discord token", ".", rf"{_START}[MNO][\w-]{{23,27}}\.[\w-]{{6,7}}\.[\w-]{{27,40}}(?![\w-])"),
    _rule("Twilio key", "sk ac", rf"{_START}(?:SK|AC)[0-9a-f]{{32}}(?![A-Za-z0-9])"),
    _rule("Telegram token", ":aa", rf"{_START}\d{{8,10}}:AA[\w-]{{32,}}"),
    _rule("Azure secret", "8q~", r"(?<![\w.~-])[\w.~-]{3}8Q~[\w.~-]{31,34}(?![\w.~-])"),
    _rule("Terraform token", ".atlasv1.", rf"{_START}[A-Za-z0-9]{{14}}\.atlasv1\.[\w-]{{60,}}"),
    _rule(
        "API key",
        " ".join(prefix.lower() for prefix in _PREFIXES),
        rf"{_START}(?:{'|'.join(map(re.escape, _PREFIXES))})(?=[\w-]{{0,80}}\d)[A-Za-z0-9][\w-]{{18,}}",
    ),
)
"""Secrets that are known by their own form."""

_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|secrets?|token|credentials?|connection[_.-]?string"
    r"|(?:api|access|private|secret|signing|encryption|auth|account|shared[_.-]?access)[_.-]?keys?|client[_.-]?secret"
    r"|(?:identity|registry|refresh|access|auth|bearer|session|api)token"
)
_NAME = (
    r"(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=PASSWORD|PASSWD|SECRET|TOKEN|APIKEY)))"
    rf"(?:{_NAMES}|(?<=[_.-])pass)"
)
"""A name, or the last words of one. What stands before is not looked at: that could take for ever in a long text."""

_COMMAND = r"[^\n|;&]{0,300}?\s"
"""The words of a command before the option that matters."""

CONTEXTS = (
    _rule(
        "header",
        "authorization api-key x-auth-token",
        r"(?i)\b(?:(?:proxy-)?authorization|(?:x-)?(?:goog-)?api-key|x-auth-token)[\"']?\s*[:=]\s*[\"']?"
        r"(?:(?:bearer|basic|token|digest|negotiate)\s+)?([^\s\"'`\\,;<>(){}\[\]$]{6,})(?![\w.(\[])",
    ),
    _rule("cookie", "cookie", r"(?i)\b(?:set-)?cookie:\s*([^\s\"'\\=]{1,100}=[^\n\"'\\]+)"),
    _rule("bearer token", "bearer", r"(?i)\bbearer\s+([\w.~+/=-]*[\d._~+/=-][\w.~+/=-]{12,})"),
    _rule("password", "://", r"://[^\s/:@\"'<>]*:([^\s/@\"'<>]+)@(?=[\w\[.-])"),
    _rule("link", "/share/ /link/", r"/(?:share|link)/([\w-]{43})(?![\w-])"),  # to one of our sessions, or to sign in
    _rule("signature", "sig=", r"[?&]sig=([A-Za-z0-9%+/=_-]{20,})"),
    _rule(
        "password",
        "machine",
        r"\bmachine\s{1,9}[^\s]{1,200}\s{1,9}(?:(?:login|account)\s{1,9}[^\s]{1,200}\s{1,9}){0,2}"
        r"password\s{1,9}([^\s]{1,200})",
    ),
    # A line of .pgpass: host, port, database, user, password.
    _rule("password", ":543 :6432: :*:", r"(?m)^[^\s:]{1,200}:(?:543\d|6432|\*):[^\s:]{1,99}:[^\s:]{1,99}:(\S+)$"),
    _rule(
        "secret",
        "</",
        rf"(?i)<(?:[\w.-]{{0,40}}[:._-])?(?:{_NAMES}|api-?key)(?:\s[^<>]{{0,200}})?>\s*([^<>\s][^<>]{{0,9999}}?)\s*</",
    ),
    _rule("secret", "_auth", r"(?<![A-Za-z0-9])_auth\s{0,9}=\s{0,9}\"?([A-Za-z0-9+/=]{8,}+)(?![\w(.\[-])"),
    _rule("password", "curl", rf"\bcurl\b[^\n]{{0,300}}?\s(?:-u|--user)[ =]+[\"']?[\w.@-]+:({VALUE}+)"),
    _rule("password", "sshpass", rf"\bsshpass\s(?:-[evh]\s)?\s{{0,9}}-p\s{{0,9}}[\"']?({VALUE}+)"),
    _rule("password", "mysql mariadb", rf"\b(?:mysql|mariadb)[\w-]*\b{_COMMAND}-p[\"']?({VALUE}+)"),
    _rule("password", "7z", rf"\b7z[ar]?\b{_COMMAND}-p[\"']?({VALUE}+)"),
    _rule("password", "redis-cli", rf"\bredis-cli\b{_COMMAND}(?:-a|--pass)[ =]+[\"']?({VALUE}+)"),
    _rule("password", "mongo", rf"\bmongo\w*\b{_COMMAND}-p[ =]+[\"']?({VALUE}+)"),
    _rule(
        "password",
        "login",
        rf"\b(?:docker|podman|helm|oc|az)\s(?:[\w-]+\s){{0,2}}login{_COMMAND}-p[ =]+[\"']?({VALUE}+)",
    ),
    _rule(
        "secret",
        "setx",
        rf"(?i)\bsetx(?:\.exe)?\s{{1,9}}(?:/m\s{{1,9}})?[\"']?[\w.-]{{0,60}}(?:{_NAMES}|key|pat|pass)[\"']?\s{{1,9}}[\"']?"
        rf"({VALUE}{{4,}})",
    ),
    _rule("password", "openssl", rf"\bopenssl\b{_COMMAND}-[kK]\s{{1,9}}[\"']?({VALUE}{{4,}})"),
    _rule(
        "password",
        "htpasswd",
        rf"\bhtpasswd\s{{1,9}}-(?=\w{{0,9}}n)(?=\w{{0,9}}b)\w{{2,9}}\s{{1,9}}\S{{1,99}}\s{{1,9}}[\"']?({VALUE}+)",
    ),
    _rule(
        "password",
        "htpasswd",
        r"\bhtpasswd\s{1,9}(?:-\w{1,9}\s{1,9}){0,3}-(?!\w{0,9}n)\w{0,9}b\w{0,9}\s{1,9}(?:-\w{1,9}\s{1,9}){0,3}"
        rf"(?!-)\S{{1,200}}\s{{1,9}}\S{{1,99}}\s{{1,9}}[\"']?({VALUE}+)",
    ),
    _rule("password", "zip", rf"\b(?:un)?zip\b{_COMMAND}-P[ =]+[\"']?({VALUE}+)"),
    _rule("password", "ldap", rf"\bldap\w+\b{_COMMAND}-w[ =]+[\"']?({VALUE}+)"),
    _rule("password", "-pass", rf"-pass(?:in|out)?[ =]+[\"']?pass:({VALUE}+)"),
    _rule(
        "secret",
        "--pass --token --secret --api --auth --client --access --account",
        rf"--(?:[a-z]+-)*(?:{_NAMES})[ =]+[\"']?({VALUE}{{4,}})(?![\w(\[])",
    ),
)
"""Secrets that are known by a form around them that only secrets have."""

KEYWORDS = ("pass", "pwd", "secret", "token", "key", "cred", "connection", "_pat")
"""A line without any of these has none of the names below."""

_QUOTE = r"\\?[\"']"

QUOTED = re.compile(rf"(?i){_NAME}(?:{_QUOTE})?\s*(?:=>|[:=])\s*({_QUOTE})((?:(?!\1).)+?)\1")
"""`"apiKey": "…"`: the secret is group 2."""
ASSIGNED = re.compile(rf"(?i)({_NAME})=({VALUE}{{4,}})(?![(\[])")
"""`PASSWORD=…`: the name is group 1, the secret group 2."""
ON_A_LINE = re.compile(
    rf"(?im)^[ \t>+-]*+(?:(?:export|set)[ \t]+)?[\w.-]*({_NAME})[ \t]*[:=][ \t]+({VALUE}{{4,}})[ \t]*(?:[ \t][#;].*)?$"
)
"""`password = …` and `token: …` on a line of their own, with or without a comment behind: groups as in `ASSIGNED`."""
IN_A_SENTENCE = re.compile(
    rf"(?i)({_NAME})[ \t]{{0,3}}[:=][ \t]{{1,3}}((?=\S{{0,80}}\d)(?=\S{{0,80}}[A-Za-z]){VALUE}{{12,}})(?![\w(\[])"
)
"""`use password = …` among other words, where the value has letters and digits and is long: groups as in `ASSIGNED`."""
VARIABLE = re.compile(rf"(?<![A-Za-z0-9_])([A-Z][A-Z0-9_]*_(?:KEY|PAT|CREDS))[ \t]?=[ \t]?[\"']?({VALUE}{{8,}})")
"""`STRIPE_KEY=…`: a variable of the environment, groups as in `ASSIGNED`."""

_NO_SECRET = re.compile(r"(?:^|_)(?:PUBLIC|PRIMARY|FOREIGN|SORT|CACHE|PARTITION|HASH|INDEX|GROUP|ROUTING|HOST)_KEY$")

_PLACEHOLDER = re.compile(
    r"""
    [xX*.…•\#?_-]+ | (?-i:[A-Z]+(?:_[A-Z]+)+) | \[redacted.* | <.*> | \$.* | \{.*\} | %.*% | !.* | \*\w+ | your[ _-].*
    | (?:(?:my|test|some|new|old|the)[_-]?)?(?:password|passwd|secret|token|key) | change-?me | example | placeholder
    | secret(?:str|bytes)\?? | str(?:ing)?\?? | bytes | null | nil | none | undefined | true | false | required
    | optional | bearer | basic | incorrect | invalid | wrong | missing | empty | hidden | expired | unchanged
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+"  # self.token
    r"|(?i:[a-z_]*(?:pass|passwd|password|pwd|secret|token|key|credentials?))"  # new_password
    r"|[a-z]+_[a-z_]+"
)
"""What stands where a secret could stand, and is the name of one."""


def is_placeholder(value: str) -> bool:
    """Return whether a value only stands for a secret: `changeme`, `<token>`, `$PASSWORD`, `********`."""
    return _PLACEHOLDER.fullmatch(value) is not None


def is_code(value: str) -> bool:
    """Return whether a value is the name of something in a program: `self.token`, `api_key`."""
    return _CODE.fullmatch(value) is not None


def is_assigned_secret(name: str, value: str) -> bool:
    """Return whether a value that is assigned to a secret's name is one, and not code, a type or a placeholder."""
    if is_placeholder(value) or (is_code(value) and not name.isupper()):
        return False
    has_digit = re.search(r"\d", value) is not None
    if not name.isupper() and not name.lower().startswith(("pass", "pwd")):
        return has_digit and len(value) >= 6
    return len(value) >= 6 or has_digit


def is_variable_secret(name: str, value: str) -> bool:
    """Return whether the value of a variable that ends in `_KEY` is one: letters and digits, no path, no address."""
    if _NO_SECRET.search(name) or is_placeholder(value) or re.match(r"[~/.]|\w+:/", value):
        return False
    return re.search(r"\d", value) is not None and re.search(r"[A-Za-z]", value) is not None


_SECRET_MEMBER = re.compile(
    rf"(?i)(?:^|.*[_.-])(?:{_NAMES}|pass|pat|(?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api[_-]?keys?)$"
)
_CONTAINER = re.compile(r"(?i)(?:^|.*[_.-])(?:credentials?|creds|secrets?|passwords)$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Return whether something of that name is kept secret: `API_KEY`, `clientSecret`, `Authorization`."""
    return len(name) < 200 and _SECRET_MEMBER.match(_CAMEL.sub("_", name)) is not None


@lru_cache(maxsize=1024)
def holds_secrets(name: str) -> bool:
    """Return whether what is inside an object of that name is kept secret, whatever it is called: `credentials`."""
    return len(name) < 200 and _CONTAINER.match(_CAMEL.sub("_", name)) is not None


def is_basic_auth(value: str) -> bool:
    """Return whether a value is a user's name and password in base64, as in the files of Docker and npm."""
    try:
        user, colon, password = b64decode(value, validate=True).decode("ascii").partition(":")
    except ValueError:
        return False
    return bool(user and colon and password) and (user + password).isprintable()
