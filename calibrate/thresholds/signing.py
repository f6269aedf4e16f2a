"""Signatures of releases: who holds the key made this file, and nobody changed it since.

A signature is Ed25519 (RFC 8032) over the RFC 8785 bytes of the document without `digest` and `x-signature`, and stands
in the file as `x-signature`: readers that do not check signatures read the file as any other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Union

from calibrate.errors import BadInput
from calibrate.thresholds.canonical import canonical
from calibrate.thresholds.model import ThresholdsFile, to_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIGNATURE = "x-signature"
ALGORITHM = "ed25519"
LONGEST_KEY = 1 << 14

Signer = Union["Ed25519PrivateKey", Literal["none"], None]
"""The key to sign with; "none" where a release shall not be signed, None where nobody said."""

KeyPlace = str | os.PathLike[str]
"""A file with a key in PEM, or the text of one."""


def read_signer(place: KeyPlace) -> Signer:
    """Read the private key to sign releases with; None for "", and "none" for releases that shall not be signed."""
    if place in ("", "none"):
        return None if place == "" else "none"
    name, content = _read_pem(place)  # first: it says what to install
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError) as error:  # TypeError: it needs a password
        reason = "it wants a password" if isinstance(error, TypeError) else "it is no private key in PEM"
        raise BadInput(f"{name}: {reason}; `openssl genpkey -algorithm ed25519 -out KEYFILE` makes one") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInput(f"{name}: it is no Ed25519 key; `openssl genpkey -algorithm ed25519 -out KEYFILE` makes one")
    return key


def read_public_keys(places: KeyPlace | Sequence[KeyPlace] | None) -> tuple[Ed25519PublicKey, ...]:
    """Read the public keys of those whose releases are taken, of one or of several; none for None."""
    if places is None:
        return ()
    if isinstance(places, (str, os.PathLike)):
        places = [places]
    if not isinstance(places, Sequence) or not places:
        raise BadInput("verify_key is no key: give the file of a public key in PEM, its text, or a list of them")
    return tuple(map(_read_public_key, places))


def sign(file: ThresholdsFile, key: Ed25519PrivateKey) -> ThresholdsFile:
    """Return the release with its signature, in place of any that it had."""
    value = base64.b64encode(key.sign(signed_bytes(to_json(file)))).decode()
    signature = {"algorithm": ALGORITHM, "key": key_id(key.public_key()), "value": value}
    return replace(file, extra={**file.extra, SIGNATURE: signature})


def without_signature(file: ThresholdsFile) -> ThresholdsFile:
    """Return the release without the signature that it may have."""
    return replace(file, extra={name: value for name, value in file.extra.items() if name != SIGNATURE})


def signature_problem(document: Mapping[str, Any], keys: Sequence[Ed25519PublicKey]) -> str | None:
    """Describe why none of these keys has signed the document; None where one has."""
    from cryptography.exceptions import InvalidSignature

    signature = document.get(SIGNATURE)
    if signature is None:
        return "it is not signed, and only a signed release is taken here (verify_key); `release --sign` signs one"
    try:
        if signature["algorithm"] != ALGORITHM:
            return "its signature is of a kind that this reader does not know: upgrade Touchstone to check it"
        value = base64.b64decode(signature["value"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        return "its signature cannot be read; take it again from the release page"
    content = signed_bytes(document)
    for key in keys:
        try:
            key.verify(value, content)
        except InvalidSignature:
            continue
        return None
    return "its signature is not by a key that is trusted here (verify_key), or it was changed after it was signed"


def signed_bytes(document: Mapping[str, Any]) -> bytes:
    """The bytes that a signature is over."""
    return canonical({name: value for name, value in document.items() if name not in ("digest", SIGNATURE)})


def key_id(key: Ed25519PublicKey) -> str:
    """The first 16 hex digits of the SHA-256 of a public key's 32 bytes: for people, to tell keys apart."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:16]


def _read_public_key(place: KeyPlace) -> Ed25519PublicKey:
    name, content = _read_pem(place)  # first: it says what to install
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(content)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise BadInput(
            f"{name}: it is no public Ed25519 key in PEM; `openssl pkey -in KEYFILE -pubout -out PUBLIC` makes one"
        )
    return key


def _read_pem(place: KeyPlace) -> tuple[str, bytes]:
    """The name of a key, for messages, and its bytes. The text of a key is never shown."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise BadInput("signatures need cryptography: `pip install touchstone[sign]`") from None
    if not isinstance(place, (str, os.PathLike)):
        raise BadInput("a key is a file in PEM, or its text")
    text = os.fspath(place)
    if text.lstrip().startswith("-----BEGIN"):
        return "the key", text.encode()
    try:
        with open(text, "rb") as stream:
            return text, stream.read(LONGEST_KEY)
    except (OSError, ValueError) as error:
        raise BadInput(f"the key {text[:200]!r} cannot be read: {getattr(error, 'strerror', None) or error}") from None
