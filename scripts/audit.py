"""Whether a vulnerability is known in what the locks name: exit 1 if so, and 0 where nobody can be
asked.

pip-audit asks the advisory service of the package index, one request for each package. An index
that is a plain one knows of no advisories: that is told, and no lock is called sound for it. What
was answered is told again on the same day without asking.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
TIMEOUT = "5"  # seconds for one answer


def main() -> int:
    """Audit every lock; the exit code."""
    code = 0
    told_of: dict[str, list[str]] = {}
    for path in sorted(FOLDER.glob("*.txt")):
        stamp = _stamp(path)
        if not stamp.exists():
            report = _report(path)
            if report is None:
                return code
            flaws, told = judged(report)
            if flaws:
                print("\n".join([f"error: {path.name}", *flaws]), file=sys.stderr)
                code = 1
                continue
            stamp.write_text(told, encoding="utf-8")
        told_of.setdefault(stamp.read_text(encoding="utf-8"), []).append(path.stem)
    for told, locks in told_of.items():
        print(f"{told} ({', '.join(locks)})", file=sys.stderr)
    return code


def judged(report: Mapping[str, Any]) -> tuple[list[str], str]:
    """The vulnerabilities that pip-audit reports, and what is to be told where there are none."""
    packages = report["dependencies"]
    flaws = [
        f"  {package['name']} {package['version']}: {flaw['id']},"
        f" fixed in {', '.join(flaw['fix_versions']) or 'no version'}"
        for package in packages
        for flaw in package.get("vulns", ())
    ]
    skipped = sum("skip_reason" in package for package in packages)
    if skipped == len(packages):
        return flaws, "warning: not audited, the package index that is asked here has no advisories"
    if skipped:
        return (
            flaws,
            f"warning: nobody knows of advisories for {skipped} of {len(packages)} packages",
        )
    return flaws, f"no vulnerability is known in {len(packages)} packages"


def _report(path: Path) -> Mapping[str, Any] | None:
    """What pip-audit says of a lock; None, and a warning, if nobody answered."""
    argv = [sys.executable, "-m", "pip_audit", "--requirement", str(path), "--disable-pip"]
    argv += ["--require-hashes", "--format", "json", "--progress-spinner", "off"]
    argv += ["--timeout", TIMEOUT]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    try:
        report: Mapping[str, Any] = json.loads(done.stdout)
    except ValueError:
        why = (done.stderr.strip() or "no answer").splitlines()[-1][:160]
        print(f"warning: the locks were not audited ({why})", file=sys.stderr)
        return None
    return report


def _stamp(path: Path) -> Path:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    return ROOT / ".venv" / f".audited-{digest}-{time.strftime('%Y-%m-%d')}"


if __name__ == "__main__":
    sys.exit(main())
