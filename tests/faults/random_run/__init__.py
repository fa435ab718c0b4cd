"""Random faults, edits and metric values, and invariants that are checked on the record of all writes."""
