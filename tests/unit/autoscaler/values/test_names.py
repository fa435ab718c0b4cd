"""Names, labels and annotation keys: what Kubernetes refuses, and in which words."""

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
        pytest.param("web-1", [], id="a name"),
        pytest.param("a.b", ["must not contain dots"], id="dots"),
        pytest.param("Web", [BAD_LABEL], id="capitals"),
        pytest.param("", [BAD_LABEL], id="empty"),
        pytest.param("a\n", [BAD_LABEL], id="a newline at the end"),
        pytest.param("a" * 64, ["must be no more than 63 characters"], id="too long"),
        pytest.param("-" * 64, ["must be no more than 63 characters", BAD_LABEL], id="too long and wrong"),
    ],
)
def test_a_dns_label(name, problems):
    assert names.dns_label_problems(name) == problems


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        pytest.param("web.example.com", [], id="a name"),
        pytest.param("a..b", [BAD_SUBDOMAIN], id="an empty part"),
        pytest.param("a" * 254, ["must be no more than 253 characters"], id="too long"),
    ],
)
def test_a_dns_subdomain(name, problems):
    assert names.dns_subdomain_problems(name) == problems


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        pytest.param("app", [], id="a plain key"),
        pytest.param("example.com/App_1.x", [], id="a key with a prefix"),
        pytest.param("", ["name part must be non-empty", f"name part {BAD_KEY}"], id="empty"),
        pytest.param("/x", ["prefix part must be non-empty"], id="an empty prefix"),
        pytest.param("Example.com/x", [f"prefix part {BAD_SUBDOMAIN}"], id="capitals in the prefix"),
        pytest.param(f"{'a' * 254}/x", ["prefix part must be no more than 253 bytes"], id="a prefix too long"),
        pytest.param("k" * 64, ["name part must be no more than 63 bytes"], id="a name too long"),
        pytest.param("-x", [f"name part {BAD_KEY}"], id="a dash at the start"),
        pytest.param(
            "a/b/c",
            [f"a valid label key {BAD_KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
            id="two slashes",
        ),
    ],
)
def test_a_label_key(key, problems):
    assert names.label_key_problems(key) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        pytest.param("", [], id="empty is fine"),
        pytest.param("v1.2_b", [], id="a value"),
        pytest.param("no good", [BAD_VALUE], id="a space"),
        pytest.param("é" * 32, ["must be no more than 63 bytes", BAD_VALUE], id="length is in bytes"),
        pytest.param("\ud800", [BAD_VALUE], id="half a character"),
    ],
)
def test_a_label_value(value, problems):
    assert names.label_value_problems(value) == problems


@pytest.mark.parametrize("key", ["Example.COM/Key", "\u0130x"])
def test_an_annotation_key_may_have_capitals_anywhere(key):
    assert names.annotation_key_problems(key) == []


@pytest.mark.parametrize(
    ("segment", "problems"),
    [
        pytest.param("anything: at all", [], id="nearly anything goes"),
        pytest.param(".", ["may not be '.'"], id="here"),
        pytest.param("..", ["may not be '..'"], id="one up"),
        pytest.param("50%/x", ["may not contain '/'", "may not contain '%'"], id="what a path would misread"),
    ],
)
def test_a_path_segment(segment, problems):
    assert names.path_segment_problems(segment) == problems


def test_the_prefix_of_a_path_segment_may_be_dots():
    assert names.path_segment_prefix_problems("..") == []


@pytest.mark.parametrize(
    ("prefix", "checked"),
    [
        pytest.param("web-", "wea", id="a dash at the end will not be last"),
        pytest.param("web", "web", id="no dash"),
        pytest.param("-", "-", id="nothing but a dash"),
        pytest.param("é-", "\ufffda", id="bytes are cut, not characters"),
    ],
)
def test_a_generated_names_prefix_is_checked_as_if_continued(prefix, checked):
    assert names.mask_trailing_dash(prefix) == checked


@pytest.mark.parametrize(
    ("resource", "problems"),
    [
        pytest.param("cpu", [], id="standard"),
        pytest.param("hugepages-2Mi", [], id="huge pages"),
        pytest.param("pods", ["must be a standard resource for containers"], id="standard, but not of containers"),
        pytest.param(
            "requests.hugepages-2Mi", ["must be a standard resource for containers"], id="a quota on huge pages"
        ),
        pytest.param(
            "gpu",
            ["must be a standard resource type or fully qualified", "must be a standard resource for containers"],
            id="unknown",
        ),
        pytest.param("-", [f"name part {BAD_KEY}", "must be a standard resource for containers"], id="not a name"),
        pytest.param("example.com/gpu", [], id="extended"),
        pytest.param("kubernetes.io/whatever", [], id="native"),
        pytest.param(
            "requests.example.com/gpu",
            ["doesn't follow extended resource name standard"],
            id="a quota is not a resource",
        ),
        pytest.param(
            f"{'a' * 250}/gpu", ["doesn't follow extended resource name standard"], id="no room for a quota's prefix"
        ),
    ],
)
def test_a_containers_resource(resource, problems):
    assert names.container_resource_problems(resource) == problems


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain é", '"plain é"', id="printable"),
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quote and backslash"),
        pytest.param("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"', id="the named ones"),
        pytest.param("\x00\x7f", r'"\x00\x7f"', id="other controls"),
        pytest.param("\u00ad\u3000", r'"\u00ad\u3000"', id="invisible"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="invisible, and far out"),
    ],
)
def test_quoting_is_gos(text, shown):
    assert names.quoted(text) == shown
