"""Audits of federations."""
