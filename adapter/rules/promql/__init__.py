"""PromQL expressions: label matchers, selectors and sample ages."""
