"""New Relic: what NRQL finds, by NerdGraph, the queries of many rules by one call."""
