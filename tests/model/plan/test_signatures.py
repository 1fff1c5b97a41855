"""Signatures of plans: which ones count, and what is said of the others."""

import base64
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from model.errors import ConfigError, GuardrailRefused
from model.plan.signatures import (
    RequiredSignature,
    add_signatures,
    read_signatures,
    sign,
    signature_file,
    signed_text,
)
from tests.support.model.signing_keys import key_pair

HASH, OTHER = "0a" * 32, "0b" * 32


class Site:
    """A waiting plan, a key that may approve it, and one that may not."""

    def __init__(self, folder: Path) -> None:
        self.key, self.keys = key_pair(folder, "eve")
        self.unknown, self.unknown_public = key_pair(folder, "mallory")
        self.required = RequiredSignature(self.keys, folder)
        self.path = signature_file(folder / f"{HASH}.plan.json")

    def signed(self, plan_hash: str, key: Path) -> str:
        made = sign(plan_hash, key)
        add_signatures(self.path, [base64.b64decode(made.text)])
        return made.signer


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_signature_by_a_listed_key_counts_and_names_it(site: Site) -> None:
    signer = site.signed(HASH, site.key)
    der = base64.b64decode("".join(site.keys.read_text().splitlines()[1:-1]))
    assert site.required.of(HASH).signer == signer == hashlib.sha256(der).hexdigest()


def test_one_valid_signature_among_others_is_enough(site: Site) -> None:
    site.signed(HASH, site.unknown)
    signer = site.signed(HASH, site.key)
    site.signed(HASH, site.key)
    assert len(read_signatures(site.path)) == 2
    assert site.required.of(HASH).signer == signer
    site.keys.write_text(site.unknown_public.read_text() + "a comment\n" + site.keys.read_text())
    assert site.required.of(HASH).signer != signer


def test_a_plan_without_a_signature_is_refused(site: Site) -> None:
    with pytest.raises(GuardrailRefused, match=rf"not signed: there is no {site.path}"):
        site.required.of(HASH)


def test_a_signature_of_another_plan_or_by_an_unknown_key_is_refused(site: Site) -> None:
    site.signed(OTHER, site.key)
    site.signed(HASH, site.unknown)
    with pytest.raises(GuardrailRefused, match=r"no signature of plan 0a0a.* by a key of .*pub"):
        site.required.of(HASH)


def test_a_signature_of_the_bare_hash_is_refused(site: Site) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(site.key.read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey)
    site.path.write_bytes(key.sign(HASH.encode()))
    with pytest.raises(GuardrailRefused):
        site.required.of(HASH)
    site.path.write_bytes(key.sign(signed_text(HASH)))
    assert site.required.of(HASH).signer


def test_a_changed_byte_makes_a_signature_worthless(site: Site) -> None:
    made = base64.b64decode(sign(HASH, site.key).text)
    for place in range(len(made)):
        site.path.write_bytes(made[:place] + bytes([made[place] ^ 1]) + made[place + 1 :])
        with pytest.raises(GuardrailRefused):
            site.required.of(HASH)


@pytest.mark.parametrize("content", ["AAAA", "no base64!", "é"])
def test_a_truncated_signature_is_named(site: Site, content: str) -> None:
    site.signed(HASH, site.key)
    site.path.write_text(site.path.read_text() + content)
    with pytest.raises(ConfigError, match=r"\.sig: signature 2 is truncated or not in base64"):
        site.required.of(HASH)


def test_keys_that_others_can_read_or_change_are_refused(site: Site) -> None:
    site.key.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read or change the key"):
        sign(HASH, site.key)
    site.keys.chmod(0o666)
    site.path.touch()
    with pytest.raises(ConfigError, match="others can read or change the public keys"):
        site.required.of(HASH)


def test_keys_of_another_kind_are_named(site: Site, tmp_path: Path) -> None:
    key = generate_private_key(SECP256R1())
    path = tmp_path / "other"
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(ConfigError, match="another kind than Ed25519"):
        sign(HASH, path)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    site.keys.write_bytes(public)
    site.path.touch()
    with pytest.raises(ConfigError, match="another kind than Ed25519"):
        site.required.of(HASH)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no public key in PEM"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "damaged public key"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "holds a private key"),
        ("x" * 100_000, "large|most|bytes"),
    ],
)
def test_files_without_usable_keys_are_named(site: Site, text: str, message: str) -> None:
    site.keys.write_text(text)
    site.path.touch()
    with pytest.raises(ConfigError, match=message):
        site.required.of(HASH)
    site.key.write_text(text)
    with pytest.raises(ConfigError):
        sign(HASH, site.key)


def test_a_missing_key_is_named(site: Site, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the key .*nowhere: No such file"):
        sign(HASH, tmp_path / "nowhere")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_makes_signatures_that_count(site: Site, tmp_path: Path) -> None:
    text, made = tmp_path / "text", tmp_path / "made"
    text.write_text(f"plimsoll plan 1\n{HASH}\n")
    command = ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", str(site.key)]
    subprocess.run([*command, "-in", str(text), "-out", str(made)], check=True)
    site.path.write_bytes(made.read_bytes())
    assert site.required.of(HASH).text == sign(HASH, site.key).text
