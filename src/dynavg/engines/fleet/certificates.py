"""Certificates for a fleet of one's own: a CA, and one certificate per process.

A certificate's common name is the process's name; the broker's configuration says what that name
may do. Whoever has a CA already needs nothing of this.
"""

import datetime as dt
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority"]

CURVE = ec.SECP256R1()


class Authority:
    """A certificate authority, made when this object is; its key stays in `folder`."""

    def __init__(self, folder: Path, name: str, days: int) -> None:
        self._key = ec.generate_private_key(CURVE)
        self._name = _named(f"{name} CA")
        self._days = days
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        self._certificate = (
            self._begin(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        folder.mkdir(parents=True)
        _write_key(folder / "key.pem", self._key)
        self._write(folder / "certificate.pem", self._certificate)

    def issue(self, folder: Path, name: str, hosts: Iterable[str] = ()) -> None:
        """Put ca.pem, certificate.pem and key.pem for the process `name` into a folder of its own.

        `hosts` are names or addresses under which it will be reached: the broker's.
        """
        key = ec.generate_private_key(CURVE)
        hosts = tuple(hosts)
        kind = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            self._begin(_named(name), key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([kind]), critical=False)
            .add_extension(authority, critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        folder.mkdir(parents=True)
        _write_key(folder / "key.pem", key)
        self._write(folder / "certificate.pem", builder.sign(self._key, hashes.SHA256()))
        self._write(folder / "ca.pem", self._certificate)

    def _begin(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + dt.timedelta(days=self._days))
        )

    def _write(self, path: Path, certificate: x509.Certificate) -> None:
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text)
