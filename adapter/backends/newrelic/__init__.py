"""New Relic backend: NRQL queries through NerdGraph, with the queries of many rules in one request."""
