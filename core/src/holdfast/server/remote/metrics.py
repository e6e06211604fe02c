"""What a server counts, for Prometheus: text in its exposition format, without any dependency."""

from __future__ import annotations

from collections import Counter


class Metrics:
    """Counters and gauges. Names of people and sessions are not among the labels."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        """By method and status."""
        self.refused: Counter[str] = Counter()
        """By reason: ``host``, ``token``, ``rate``, ``connections``, ``sockets``, ``bytes``."""
        self.opened: Counter[str] = Counter()
        """Connections ever, by transport."""
        self.resumed: Counter[str] = Counter()
        """Streams that were read again, by where from: ``memory``, ``journal``."""

    def text(self, gauges: dict[str, dict[str, float]]) -> str:
        """Return all of it; `gauges` are the values of now, by name and label."""
        lines: list[str] = []

        def family(name: str, kind: str, about: str, values: dict[str, float]) -> None:
            lines.extend((f"# HELP {name} {about}", f"# TYPE {name} {kind}"))
            lines.extend(f"{name}{labels} {value:g}" for labels, value in sorted(values.items()))

        requests = {f'{{method="{method}",status="{status}"}}': n for (method, status), n in self.requests.items()}
        family("holdfast_http_requests_total", "counter", "Requests, by method and status.", dict(requests))
        for name, about, counted, label in (
            ("holdfast_refused_total", "Requests that were let in nowhere, by reason.", self.refused, "reason"),
            ("holdfast_connections_total", "Connections ever, by transport.", self.opened, "transport"),
            ("holdfast_resumed_total", "Streams read again, by outcome.", self.resumed, "outcome"),
        ):
            family(name, "counter", about, {f'{{{label}="{key}"}}': n for key, n in counted.items()})
        for name, values in gauges.items():
            family(name, "gauge", GAUGES[name], values)
        return "\n".join(lines) + "\n"


GAUGES = {
    "holdfast_connections": "Connections now, by transport.",
    "holdfast_sessions": "Sessions in memory.",
    "holdfast_turns": "Turns that run now.",
    "holdfast_unsent_bytes": "Bytes that clients have not read.",
    "holdfast_sockets": "Sockets that are open, by whose they are.",
    "holdfast_draining": "Whether the server takes no new turns.",
}
"""Each gauge, and what it tells."""
