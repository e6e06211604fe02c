"""What a browser may do with our pages: next to nothing besides showing them.

No script but ours runs, nothing is loaded from or sent to anywhere else, nothing shows us in a frame, and no script can
make markup of a text but through the one policy of `assets/fragments.js`, which is given answers of ours alone. So what
slips through the escaping of all that agents say still does nothing.
"""

POLICY_NAME = "holdfast"
"""The one policy for Trusted Types, in `assets/fragments.js`."""

POLICY: str = "; ".join((
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    f"trusted-types {POLICY_NAME}",
))  # fmt: skip

HEADERS: tuple[tuple[str, str], ...] = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
"""What every answer carries."""
