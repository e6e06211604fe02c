"""Which code is highlighted, and as what: the names that people write behind a fence, and the ends of files' names."""

from __future__ import annotations

LANGUAGES: dict[str, str] = {
    "python": "python", "py": "python", "pycon": "pycon", "bash": "bash", "sh": "bash", "shell": "bash",
    "zsh": "bash", "console": "console", "javascript": "javascript", "js": "javascript", "jsx": "javascript",
    "typescript": "typescript", "ts": "typescript", "tsx": "typescript", "json": "json", "jsonc": "json",
    "yaml": "yaml", "yml": "yaml", "toml": "toml", "ini": "ini", "html": "html", "xml": "xml", "css": "css",
    "sql": "sql", "rust": "rust", "rs": "rust", "go": "go", "golang": "go", "kotlin": "kotlin",
    "kt": "kotlin", "c": "c", "h": "c", "cpp": "cpp", "c++": "cpp", "cs": "csharp", "csharp": "csharp",
    "ruby": "ruby", "rb": "ruby", "php": "php", "swift": "swift", "dart": "dart", "lua": "lua", "elixir": "elixir",
    "haskell": "haskell", "hs": "haskell", "scala": "scala", "diff": "diff", "patch": "diff", "make": "make",
    "makefile": "make", "dockerfile": "docker", "docker": "docker", "nix": "nix", "zig": "zig",
}  # fmt: skip
"""By name, the lexer of Pygments. Not every lexer there is: some, as that of Java, can be kept busy for long."""

LONG_LINE = 240
"""Code with longer lines is not highlighted: it is data, and takes long."""
