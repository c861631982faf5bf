"""What the SDK's own upload scanner says: "TARGET<TAB>RELATIVE" lines in, the
same with "<TAB>1" (it would be uploaded) or "<TAB>0" out; then the limits.
"""

import pathlib
import sys
import tempfile

from agent_sandbox_backends.config.upload import UploadConfig
from agent_sandbox_backends.domain.errors import UploadPolicyError
from agent_sandbox_backends.domain.uploads import UploadSpec
from agent_sandbox_backends.security.upload_scanner import UploadScanner
from agent_sandbox_backends.upload.service import UploadService


def uploads(target, relative):
    with tempfile.TemporaryDirectory() as root:
        file = pathlib.Path(root, relative)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")

        config = UploadConfig(allowed_local_roots=(pathlib.Path(root),))
        service = UploadService.__new__(UploadService)
        service.config = config

        try:
            scanned = UploadScanner(config).scan(UploadSpec(source=root, target=target))
            service._validate_target_roots(target)
        except UploadPolicyError:
            return False

        return [e.relative_path for e in scanned.manifest.entries] == [relative]


for line in sys.stdin:
    target, relative = line.rstrip("\n").split("\t")
    print(target, relative, int(uploads(target, relative)), sep="\t")

spec = UploadSpec(source="/x", target="/workspace")
print(spec.max_file_bytes, spec.max_total_bytes, spec.max_files, sep="\t")
