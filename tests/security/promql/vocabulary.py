"""The words of generated queries."""

from typing import Final

NAMES: Final = ("x", "y", "up", "job:x:rate5m", "http_requests_total", "_", ":a", "e5", "x1m")

_KEYWORDS: Final = """
and or unless atan2 offset by without on ignoring group_left group_right bool inf nan start end step range
fill fill_left fill_right smoothed anchored with default if ifnot limit keep_metric_names info count_values
AND Or UNLESS Offset BOOL By On Group_Left NaN Inf WITH ATAN2 Start
stale none histogram schema sum min max avg group stddev stdvar count bottomk topk quantile limitk limit_ratio
"""
KEYWORDS: Final = tuple(_KEYWORDS.split())

AGGREGATIONS: Final = ("sum", "min", "max", "avg", "group", "stddev", "stdvar", "count", "SUM", "Avg")
AGGREGATIONS_WITH_NUMBER: Final = ("topk", "bottomk", "quantile", "limitk", "limit_ratio")

_VECTOR_FUNCTIONS: Final = """
abs absent acos acosh asin asinh atan atanh ceil cos cosh deg exp floor ln log10 log2 rad sgn sin sinh sort
sort_desc sqrt tan tanh timestamp histogram_avg histogram_count histogram_sum histogram_stddev
day_of_month day_of_week day_of_year days_in_month hour minute month year info
"""
VECTOR_FUNCTIONS: Final = tuple(_VECTOR_FUNCTIONS.split())
_RANGE_FUNCTIONS: Final = """
rate irate increase delta idelta deriv changes resets avg_over_time min_over_time max_over_time sum_over_time
count_over_time stddev_over_time stdvar_over_time last_over_time present_over_time absent_over_time
mad_over_time first_over_time ts_of_max_over_time ts_of_min_over_time ts_of_last_over_time
"""
RANGE_FUNCTIONS: Final = tuple(_RANGE_FUNCTIONS.split())
METRICSQL_FUNCTIONS: Final = ("default_rollup", "label_set", "label_copy", "union", "keep_last_value", "alias")

LABELS: Final = ("a", "b", "namespace", "pod", "on", "by", "__name__", "or", "le", "offset", "bool")
QUOTED_LABELS: Final = ('"a b"', "'ü'", '"namespace"', "`x.y`", '"a\\x20b"', '"bool"', '"or"', '"__name__"')
VALUES: Final = (
    "shop", "bank", "", ".*", ".+", "a|b", "}", "{", "#", "'", " or ", "\\d+", "ü", "[0-9]{2}", "b\tc", "😀", '"', "1",
    "x",
)  # fmt: skip
NUMBERS: Final = (
    "0", "1", "2", "-1", "0.5", ".5", "5.", "1e3", "1e-3", "0x1F", "017", "NaN", "nan", "Inf", "+Inf", "-inf", "5m",
    "1h30m", "1e400", "1_000", "0b1", "3ms",
)  # fmt: skip
DURATIONS: Final = ("5m", "1h", "30s", "1h30m", "1d", "2w", "1y", "100ms", "300", "1.5", "0x10", "1m1s1ms")
TIMES: Final = ("1700000000", "1.5", "start()", "end()", "0", "1700000000.123", "-5", "0x10", "START()")

SPACES: Final = (" ",) * 12 + ("\n", "\t", "  ", " # comment\n", "#}\n", " # \"'`\n", "\r\n", " #\r", " # x\r ")

SOUP: Final = (
    *KEYWORDS, *NAMES, *DURATIONS, *NUMBERS, *"(){}[],:@+-*/%^<>=!\"'`#\\~", "==", "!=", "=~", "!~", "<=", ">=", "()",
    "on()", "by (a)", 'a="b"', '"a b"="c"', '"m"', "rate(", "sum(", "vector(0)", "[5m]", "[5m:]", "offset 5m",
    "nan.5", "inf.5",
    "<<.LabelMatchers>>", "x", "x", "x{}", "{", "}", "(", ")", "\r", "\n", "\u00a0", "é", "\x00", "$a", "WITH (a=x)",
)  # fmt: skip

CORPUS: Final = (
    "vector(0) + on() group_right() offset",
    "x > bool offset",
    "x + ignoring() and",
    "vector(0) * on() group_left() or",
    'sum by (a) (rate(http_requests_total{code=~"5.."}[5m])) / ignoring (code) group_left sum by (a) (up)',
    'histogram_quantile(0.9, sum by (le) (rate(x_bucket{pod=~"a|b"}[5m] offset 1h)))',
    "max_over_time(deriv(rate(x[1m])[5m:1m])[10m:]) @ end()",
    'label_replace(up, "a", "$1", "b", "(.*)") unless on (a) y{namespace="bank"}',
    "x atan2 group_left",
    "nan.5 + inf.5",
    'x{a="b" or namespace="bank"}',
    "x default y",
    "x if y",
    "WITH (z = x) z",
    "x keep_metric_names",
    "a + fill(0) b",
    "a * on (x) group_left (y) fill_left (1) fill_right (2) b",
    '{"utf8.name", "a label"="b"}',
    'sum by ("a label") ({"utf8.name"})',
    "topk(3, x) or bottomk(2, y) and limitk(1, up)",
    "predict_linear(x[1h], 4 * 3600) < 0",
    "-x ^ 2 - -y",
    "x offset -5m @ 1700000000",
    "x[5m] anchored",
    "rate(x[5m] smoothed)",
    "rate(x[5m + 1m])",
    "x offset (5m * 2)",
    "rate(x[step()])",
    'absent(x{a="b"}) * scalar(y)',
    'count_values("namespace", x)',
    'info(x, {a="b"})',
    "quantile_over_time(0.5, x[5m:30s])",
    "x <= bool on (a) y",
    "start + end + step + range",
    "bool",
    "on",
    "sum(sum)",
    "by(x)",
)  # fmt: skip
