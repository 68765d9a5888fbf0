# SPDX-License-Identifier: Apache-2.0
"""A throw-away certificate authority, made with openssl: for one run of a lab, never for real hosts."""
from te_lab import run

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


class Authority:
    """Keeps its own certificate and those it issues in one directory."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.certificate = directory / "ca.crt"
        run(["openssl", "req", "-x509", *NEW_KEY, "-days", "2", "-subj", "/CN=te-lab CA", "-keyout", directory / "ca.key",
             "-out", self.certificate, "-addext", "keyUsage=critical,keyCertSign,cRLSign"])

    def issue(self, common_name):
        """(certificate, key) for a node or the controller."""
        certificate, key = (self.directory / f"{common_name}.{end}" for end in ("crt", "key"))
        run(["openssl", "req", "-x509", *NEW_KEY, "-days", "2", "-subj", f"/CN={common_name}", "-CA", self.certificate,
             "-CAkey", self.directory / "ca.key", "-keyout", key, "-out", certificate,
             "-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth,clientAuth",
             "-addext", f"subjectAltName=DNS:{common_name}"])
        return certificate, key
