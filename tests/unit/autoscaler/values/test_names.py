"""Validation of names, labels and annotation keys with Kubernetes' messages."""

import pytest

from autoscaler.values import names

BAD_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
BAD_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    r" '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
BAD_KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
BAD_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        pytest.param("web-1", [], id="valid"),
        pytest.param("a.b", ["must not contain dots"], id="dots"),
        pytest.param("Web", [BAD_LABEL], id="capitals"),
        pytest.param("", [BAD_LABEL], id="empty"),
        pytest.param("a\n", [BAD_LABEL], id="newline at the end"),
        pytest.param("a" * 64, ["must be no more than 63 characters"], id="too long"),
        pytest.param("-" * 64, ["must be no more than 63 characters", BAD_LABEL], id="too long and wrong"),
    ],
)
def test_dns_label_problems(name, problems):
    assert names.dns_label_problems(name) == problems


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        pytest.param("web.example.com", [], id="valid"),
        pytest.param("a..b", [BAD_SUBDOMAIN], id="empty part"),
        pytest.param("a" * 254, ["must be no more than 253 characters"], id="too long"),
    ],
)
def test_dns_subdomain_problems(name, problems):
    assert names.dns_subdomain_problems(name) == problems


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        pytest.param("app", [], id="valid without prefix"),
        pytest.param("example.com/App_1.x", [], id="valid with prefix"),
        pytest.param("", ["name part must be non-empty", f"name part {BAD_KEY}"], id="empty"),
        pytest.param("/x", ["prefix part must be non-empty"], id="empty prefix"),
        pytest.param("Example.com/x", [f"prefix part {BAD_SUBDOMAIN}"], id="capitals in the prefix"),
        pytest.param(f"{'a' * 254}/x", ["prefix part must be no more than 253 bytes"], id="prefix too long"),
        pytest.param("k" * 64, ["name part must be no more than 63 bytes"], id="name too long"),
        pytest.param("-x", [f"name part {BAD_KEY}"], id="dash at the start"),
        pytest.param(
            "a/b/c",
            [f"a valid label key {BAD_KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
            id="two slashes",
        ),
    ],
)
def test_label_key_problems(key, problems):
    assert names.label_key_problems(key) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("v1.2_b", [], id="valid"),
        pytest.param("no good", [BAD_VALUE], id="space"),
        pytest.param("é" * 32, ["must be no more than 63 bytes", BAD_VALUE], id="length in bytes"),
        pytest.param("\ud800", [BAD_VALUE], id="lone surrogate"),
    ],
)
def test_label_value_problems(value, problems):
    assert names.label_value_problems(value) == problems


@pytest.mark.parametrize("key", ["Example.COM/Key", "\u0130x"])
def test_annotation_key_may_contain_upper_case(key):
    assert names.annotation_key_problems(key) == []


@pytest.mark.parametrize(
    ("segment", "problems"),
    [
        pytest.param("anything: at all", [], id="valid"),
        pytest.param(".", ["may not be '.'"], id="dot"),
        pytest.param("..", ["may not be '..'"], id="two dots"),
        pytest.param("50%/x", ["may not contain '/'", "may not contain '%'"], id="slash and percent"),
    ],
)
def test_path_segment_problems(segment, problems):
    assert names.path_segment_problems(segment) == problems


def test_path_segment_prefix_may_be_dots():
    assert names.path_segment_prefix_problems("..") == []


@pytest.mark.parametrize(
    ("prefix", "checked"),
    [
        pytest.param("web-", "wea", id="trailing dash"),
        pytest.param("web", "web", id="no dash"),
        pytest.param("-", "-", id="dash only"),
        pytest.param("é-", "\ufffda", id="multi-byte character before the dash"),
    ],
)
def test_trailing_dash_of_generate_name_is_masked(prefix, checked):
    assert names.mask_trailing_dash(prefix) == checked


@pytest.mark.parametrize(
    ("resource", "problems"),
    [
        pytest.param("cpu", [], id="standard"),
        pytest.param("hugepages-2Mi", [], id="huge pages"),
        pytest.param("pods", ["must be a standard resource for containers"], id="standard, not for containers"),
        pytest.param(
            "requests.hugepages-2Mi", ["must be a standard resource for containers"], id="quota of huge pages"
        ),
        pytest.param(
            "gpu",
            ["must be a standard resource type or fully qualified", "must be a standard resource for containers"],
            id="unknown",
        ),
        pytest.param("-", [f"name part {BAD_KEY}", "must be a standard resource for containers"], id="invalid name"),
        pytest.param("example.com/gpu", [], id="extended"),
        pytest.param("kubernetes.io/whatever", [], id="native"),
        pytest.param(
            "requests.example.com/gpu",
            ["doesn't follow extended resource name standard"],
            id="quota",
        ),
        pytest.param(f"{'a' * 250}/gpu", ["doesn't follow extended resource name standard"], id="too long for a quota"),
    ],
)
def test_container_resource_problems(resource, problems):
    assert names.container_resource_problems(resource) == problems


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain é", '"plain é"', id="printable"),
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quote and backslash"),
        pytest.param("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"', id="named escapes"),
        pytest.param("\x00\x7f", r'"\x00\x7f"', id="other control characters"),
        pytest.param("\u00ad\u3000", r'"\u00ad\u3000"', id="invisible"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="invisible, supplementary plane"),
    ],
)
def test_string_is_quoted_like_in_go(text, shown):
    assert names.quoted(text) == shown
