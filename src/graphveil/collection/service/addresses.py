"""The name under which a client's requests are limited, and the host names under which a collector answers.

A client is an IPv4 address, or the network of an IPv6 subscriber. A proxy on the same machine names the client
(`X-Forwarded-For`), but may pass on anything that a stranger wrote: all texts that are no address share one limit.

The header Host names the collector. Without the check a foreign page whose name is made to point at this machine (DNS
rebinding) could query a collector on loopback through its reader's browser, and read the answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

#: Bits of an IPv6 address that identify a subscriber, who may choose all others.
_SUBSCRIBER_BITS = 64


def name_of(address: str) -> str:
    """Return the name under which the requests of an address are limited; empty for a text that is no address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else str(ip_network((parsed.packed, _SUBSCRIBER_BITS), strict=False))


def host_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the name in a request's one header Host, without port, in lower case; None unless there is exactly one."""
    values = [value for name, value in headers if name == b"host"]
    if len(values) != 1:
        return None
    try:
        return (urlsplit(f"//{values[0].decode('ascii')}").hostname or "").removesuffix(".") or None
    except ValueError:
        return None


def is_host(host: str, names: Collection[str]) -> bool:
    """Return whether a collector answers under a name.

    Args:
        host: see `host_of`.
        names: the declared ones; "*.example.org" stands for every name one level below.
    """
    # An address cannot be made to point elsewhere, as a foreign name can.
    if host == "localhost" or name_of(host):
        return True
    return host in names or f"*.{host.partition('.')[2]}" in names


def names_in(certificate: Path) -> frozenset[str]:
    """Return the host names in a certificate, a PEM file; ValueError where the file holds none."""
    from cryptography import x509

    first = x509.load_pem_x509_certificates(certificate.read_bytes())[0]
    try:
        alternatives = first.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(name.casefold() for name in alternatives.value.get_values_for_type(x509.DNSName))
