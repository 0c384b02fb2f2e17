"""Exact samplers over integers and their laws."""
