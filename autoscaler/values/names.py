"""Validation of names, labels and annotation keys.

Each function returns the problems of a value with Kubernetes' messages; an empty list means that it is valid. Lengths
are counted in bytes, even if the message says characters.
"""

import json
import re
from typing import Final

_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_LABEL_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_LABEL_KEY})?"

_ALPHANUMERIC_ENDS: Final = "and must start and end with an alphanumeric character"
_BAD_DNS_LABEL: Final = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC_ENDS}"
    f" (e.g. 'my-name',  or '123-abc', regex used for validation is '{_DNS_LABEL}')"
)
_BAD_DNS_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    f"{_ALPHANUMERIC_ENDS} (e.g. 'example.com', regex used for validation is '{_DNS_SUBDOMAIN}')"
)
_BAD_LABEL_KEY: Final = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_LABEL_KEY}')"
)
_BAD_QUALIFIED_NAME: Final = (
    f"a valid label key {_BAD_LABEL_KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_BAD_LABEL_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    f"{_ALPHANUMERIC_ENDS} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_LABEL_VALUE}')"
)

# Equivalent to the patterns above, which are only shown in messages; these do not backtrack.
_IS_DNS_LABEL: Final = re.compile(r"[a-z0-9]++(?>(?:-++[a-z0-9]++)*)")
_IS_DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9]++(?>(?:(?:-++|\.)[a-z0-9]++)*)")
_IS_LABEL_KEY: Final = re.compile(r"[A-Za-z0-9]++(?>(?:[-_.]++[A-Za-z0-9]++)*)")

_CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD_RESOURCES: Final = _CONTAINER_RESOURCES | {
    *("requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.storage"),
    *("limits.cpu", "limits.memory", "limits.ephemeral-storage", "storage", "persistentvolumeclaims"),
    *("pods", "resourcequotas", "replicationcontrollers", "secrets", "configmaps"),
    *("services", "services.nodeports", "services.loadbalancers"),
}
_HUGE_PAGES: Final = "hugepages-"
_QUOTA_HUGE_PAGES: Final = (_HUGE_PAGES, f"requests.{_HUGE_PAGES}")

_HTML_ESCAPES: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
_ESCAPES: Final = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", '"': '"', "\\": "\\"}

_MAX_LABEL_LENGTH: Final = 63
_MAX_SUBDOMAIN_LENGTH: Final = 253


def dns_label_problems(value: str) -> list[str]:
    """Return the problems of a DNS-1123 label, such as the name of a namespace."""
    problems = _length_problems(value, _MAX_LABEL_LENGTH, "characters")
    if not _IS_DNS_LABEL.fullmatch(value):
        problems.append("must not contain dots" if _IS_DNS_SUBDOMAIN.fullmatch(value) else _BAD_DNS_LABEL)
    return problems


def dns_subdomain_problems(value: str, unit: str = "characters") -> list[str]:
    """Return the problems of a DNS-1123 subdomain, such as the name of most objects."""
    problems = _length_problems(value, _MAX_SUBDOMAIN_LENGTH, unit)
    if not _IS_DNS_SUBDOMAIN.fullmatch(value):
        problems.append(_BAD_DNS_SUBDOMAIN)
    return problems


def label_key_problems(value: str) -> list[str]:
    """Return the problems of a label key (a qualified name)."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return [_BAD_QUALIFIED_NAME]
    problems = []
    if slash:
        prefix_problems = dns_subdomain_problems(prefix, "bytes") if prefix else ["must be non-empty"]
        problems += [f"prefix part {problem}" for problem in prefix_problems]
    name_problems = _length_problems(name, _MAX_LABEL_LENGTH, "bytes") if name else ["must be non-empty"]
    if not _IS_LABEL_KEY.fullmatch(name):
        name_problems.append(_BAD_LABEL_KEY)
    return problems + [f"name part {problem}" for problem in name_problems]


def label_value_problems(value: str) -> list[str]:
    """Return the problems of a label value; an empty value is valid."""
    problems = _length_problems(value, _MAX_LABEL_LENGTH, "bytes")
    if value and not _IS_LABEL_KEY.fullmatch(value):
        problems.append(_BAD_LABEL_VALUE)
    return problems


def annotation_key_problems(value: str) -> list[str]:
    """Return the problems of an annotation key: a label key, case-insensitive."""
    return label_key_problems(value.replace("\u0130", "i").lower())  # in Go, the lower case of U+0130 is one character


def path_segment_problems(value: str) -> list[str]:
    """Return the problems of a URL path segment; it may be empty and of any length."""
    if value in {".", ".."}:
        return [f"may not be '{value}'"]
    return path_segment_prefix_problems(value)


def path_segment_prefix_problems(value: str) -> list[str]:
    """Return the problems of a prefix of a URL path segment."""
    return [f"may not contain '{character}'" for character in "/%" if character in value]


def mask_trailing_dash(prefix: str) -> str:
    """Replace the trailing dash of a generateName, so that it can be validated as a name."""
    if len(prefix) < 2 or not prefix.endswith("-"):
        return prefix
    # Upstream replaces the last two bytes by "a", so an invalid character before the dash is not detected.
    return _bytes(prefix)[:-2].decode("utf-8", "replace") + "a"


def container_resource_problems(value: str) -> list[str]:
    """Return the problems of a container resource name."""
    problems = label_key_problems(value)
    if "/" not in value:
        if not problems and not (value in _STANDARD_RESOURCES or value.startswith(_QUOTA_HUGE_PAGES)):
            problems.append("must be a standard resource type or fully qualified")
        if not (value in _CONTAINER_RESOURCES or value.startswith(_HUGE_PAGES)):
            problems.append("must be a standard resource for containers")
    elif "kubernetes.io/" not in value and not _is_extended_resource(value):
        problems.append("doesn't follow extended resource name standard")
    return problems


def quoted(text: str) -> str:
    """Quote a string like Go's %q, as in Kubernetes' messages."""
    return f'"{"".join(map(_escaped, text))}"'


def go_json(value: str | tuple[str, ...]) -> str:
    """Encode a value like Go's JSON encoder, which escapes HTML characters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_HTML_ESCAPES)


def _is_extended_resource(value: str) -> bool:
    # The name of its quota has the prefix "requests." and must be valid as well.
    return not value.startswith("requests.") and not label_key_problems(f"requests.{value}")


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return f"\\{_ESCAPES[character]}"
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _length_problems(value: str, limit: int, unit: str) -> list[str]:
    return [f"must be no more than {limit} {unit}"] if len(_bytes(value)) > limit else []


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")  # a lone surrogate is three bytes, as in Go
