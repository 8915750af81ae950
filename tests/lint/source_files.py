"""The files that the lint checks look at: what git tracks or would track, else what lies there."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = (".cc", ".h", ".cu", ".c")


def source_files():
    """Paths relative to ROOT, sorted; build trees and ignored files are left out."""
    try:
        listed = subprocess.run(
            ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", "-z", "--cached",
             "--others", "--exclude-standard"],
            check=True, capture_output=True).stdout.decode()
        names = [name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # an unpacked source archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if not path.relative_to(ROOT).parts[0] in ("build", ".git", ".cache")]
    return sorted({pathlib.PurePosixPath(name) for name in names if (ROOT / name).is_file()
                   and not (ROOT / name).is_symlink()})


def code_files():
    return [path for path in source_files() if path.suffix in CODE]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")
