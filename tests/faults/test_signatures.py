"""A release that somebody else made, or changed, is refused by whoever asks for a signature."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from calibrate.cli import main
from calibrate.errors import BadInput, BadThresholds
from calibrate.runtime import decide, load
from calibrate.thresholds import encode, read
from calibrate.thresholds.canonical import digest_of
from calibrate.thresholds.signing import read_signer, sign
from db import open_store
from tests.thresholds.make import entry, release
from tests.workflow.making import DETECTOR, draw, fill, save

# RFC 8032, 7.1, test 1: a key pair that anybody can check.
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
FILE = release({"d": entry(0.5, "above")})


def private_pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key: Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


OURS = Ed25519PrivateKey.from_private_bytes(SEED)
TRUSTED = public_pem(Ed25519PublicKey.from_public_bytes(PUBLIC))
OTHER = public_pem(Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key())


@pytest.fixture
def signed(tmp_path: Path) -> Path:
    path = tmp_path / "thresholds.json"
    path.write_bytes(encode(sign(FILE, OURS)))
    return path


def test_openssl_agrees_on_the_signature(signed: Path, tmp_path: Path) -> None:
    """With another implementation of Ed25519 and the bytes that the page describes."""
    document = json.loads(signed.read_bytes())
    signature = document.pop("x-signature")
    del document["digest"]
    (tmp_path / "content").write_bytes(rfc8785.dumps(document))
    (tmp_path / "signature").write_bytes(base64.b64decode(signature["value"]))
    (tmp_path / "public.pem").write_text(TRUSTED)
    command = "openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in content -sigfile signature"
    done = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "Signature Verified Successfully"), done.stderr
    assert signature["algorithm"] == "ed25519"


def test_a_key_that_openssl_made_signs_and_is_trusted(tmp_path: Path) -> None:
    key, public = tmp_path / "touchstone.key", tmp_path / "touchstone.pub"
    for command in (f"genpkey -algorithm ed25519 -out {key}", f"pkey -in {key} -pubout -out {public}"):
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True)
    signer = read_signer(key)
    assert isinstance(signer, Ed25519PrivateKey)
    path = tmp_path / "t.json"
    path.write_bytes(encode(sign(FILE, signer)))
    assert load(path, verify_key=public).version == 2
    assert load(path, verify_key=[TRUSTED, public]).version == 2  # while a key is replaced both are trusted
    with pytest.raises(BadThresholds, match="not by a key that is trusted here"):
        load(path, verify_key=TRUSTED)


def test_thresholds_that_somebody_changed_and_digested_anew_are_refused(signed: Path) -> None:
    document = json.loads(signed.read_bytes())
    document["detectors"]["d"]["threshold"] = -1e9
    document["digest"] = digest_of(document)
    signed.write_text(json.dumps(document))
    assert decide(load(signed), {"d": 0.0}).flags == ("d",)  # the digest alone shows nothing
    with pytest.raises(BadThresholds, match="or it was changed after it was signed"):
        load(signed, verify_key=TRUSTED)


@pytest.mark.parametrize(
    ("signature", "sentence"),
    [
        (None, "it is not signed, and only a signed release is taken here"),
        ({"algorithm": "ed25519", "key": "", "value": "AAAA"}, "not by a key that is trusted"),
        ({"algorithm": "rsa", "key": "", "value": "AAAA"}, "of a kind that this reader does not know"),
        ({"algorithm": "ed25519", "key": "", "value": "no base64"}, "cannot be read"),
        ("ed25519", "cannot be read"),
        ({}, "cannot be read"),
    ],
)
def test_what_is_no_signature_is_refused(tmp_path: Path, signature: object, sentence: str) -> None:
    extra = {} if signature is None else {"x-signature": signature}
    path = tmp_path / "t.json"
    path.write_bytes(encode(release({"d": entry()}, extra=extra)))
    assert load(path).version == 2  # who does not ask for a signature reads it
    with pytest.raises(BadThresholds, match=sentence):
        load(path, verify_key=TRUSTED)


def test_a_reader_that_checks_nothing_reads_a_signed_release(signed: Path) -> None:
    assert read(signed).detectors == FILE.detectors
    assert encode(read(signed)) == signed.read_bytes()
    assert load(signed, verify_key=TRUSTED) == read(signed)


def test_what_is_no_key_is_said_and_never_shown(tmp_path: Path) -> None:
    rsa = generate_private_key(65537, 2048)
    files = {
        "rsa.pem": rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "rsa.pub": rsa.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "rubbish": b"sekret rubbish",
        "private.pem": private_pem(OURS),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name, sentence in (
        ("rsa.pem", "no Ed25519 key"),
        ("rubbish", "no private key"),
        ("none.pem", "cannot be read"),
    ):
        with pytest.raises(BadInput, match=sentence) as caught:
            read_signer(tmp_path / name)
        assert "sekret" not in str(caught.value)
    for name in ("rsa.pub", "rubbish", "private.pem", "none.pem"):
        with pytest.raises(BadInput):
            load(tmp_path / "t.json", verify_key=tmp_path / name)
    for wrong in (5, [], b"x"):
        with pytest.raises(BadInput):
            load(tmp_path / "t.json", verify_key=wrong)  # type: ignore[call-overload]


def test_releases_are_signed_rolled_back_signed_and_never_unsigned_by_mistake(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(sqlite_url)
    fill(store, *draw(120))
    save(store, "manual:0.55")
    store.close()
    key, public, out = tmp_path / "key.pem", tmp_path / "public.pem", tmp_path / "t.json"
    key.write_bytes(private_pem(OURS))
    public.write_text(TRUSTED)
    (tmp_path / "other.pem").write_text(OTHER)

    def call(*arguments: str) -> int:
        return main([*arguments, "--store", sqlite_url])

    assert call("release", "--out", str(out), "--sign", str(key)) == 0
    first = load(out, verify_key=public)
    assert call("release", "--out", str(out), "--tier", f"{DETECTOR}=page") == 2
    assert "v1 is signed, and no key is set here" in capsys.readouterr().err
    assert load(out).version == 1
    monkeypatch.setenv("TOUCHSTONE_SIGN_KEY", str(key))
    assert call("release", "--out", str(out)) == 2  # a signature is no change
    assert call("release", "--out", str(out), "--tier", f"{DETECTOR}=page") == 0
    assert call("release", "--rollback", "1", "--out", str(out)) == 0
    back = load(out, verify_key=public)
    assert (back.version, back.detectors) == (3, first.detectors)
    assert main(["verify", str(out), "--key", str(public)]) == 0
    assert "its signature is by the key that was given" in capsys.readouterr().out
    assert main(["verify", str(out)]) == 0
    assert "signed, which `--key PUBLIC` checks" in capsys.readouterr().out
    assert main(["verify", str(out), "--key", str(tmp_path / "other.pem")]) == 2
    assert "must not be used: its signature is not by a key" in capsys.readouterr().out
    assert call("release", "--out", str(out), "--tier", f"{DETECTOR}=off", "--sign", "none") == 0
    assert "x-signature" not in load(out).extra
