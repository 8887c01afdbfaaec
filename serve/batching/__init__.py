"""Requests of many callers become batches for one engine: checked, limited, joined, run, split again."""
