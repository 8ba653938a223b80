"""Whether a vulnerability is known in what the locks name: exit 1 if so, and 0 where nobody can be asked.

One request for each package goes to the advisory service of the package index, or is answered by pip-audit's
cache; what was found clean is not asked again on the same day.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

from lock import FOLDER, ROOT

TIMEOUT = "5"  # seconds for one answer


def main() -> int:
    """Audit every lock; the exit code."""
    known: set[str] = set()
    for path in sorted(FOLDER.glob("*.txt")):
        stamp = _stamp(path)
        if stamp.exists():
            continue
        found = _vulnerable(path)
        if found is None:
            return 0
        known.update(found)
        if not found:
            stamp.touch()
    if not known:
        print("audited: no vulnerability is known in what the locks name", file=sys.stderr)
    for line in sorted(known):
        print(line, file=sys.stderr)
    return 1 if known else 0


def _vulnerable(path: Path) -> list[str] | None:
    """The advisories for what the lock names; None, and a warning, if they could not be had."""
    argv = [sys.executable, "-m", "pip_audit", "--requirement", str(path), "--disable-pip"]
    argv += [
        "--require-hashes",
        "--format",
        "json",
        "--progress-spinner",
        "off",
        "--timeout",
        TIMEOUT,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        why = (done.stderr.strip() or "no answer").splitlines()[-1][:200]
        print(f"warning: the locks were not audited ({why})", file=sys.stderr)
        return None
    return [
        f"{package['name']} {package['version']}: {flaw['id']}, fixed in {flaw['fix_versions'] or 'none'}"
        for package in packages
        for flaw in package.get("vulns", ())
    ]


def _stamp(path: Path) -> Path:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    return ROOT / ".venv" / f".audited-{digest}-{time.strftime('%Y-%m-%d')}"


if __name__ == "__main__":
    sys.exit(main())
