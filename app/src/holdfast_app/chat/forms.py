"""Forms that an agent wants filled in, asked field by field. Pure: a schema in, questions and values out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from holdfast.view.safe_text import safe_line
from holdfast_app.chat.screen import LineQuestion

if TYPE_CHECKING:
    from collections.abc import Iterator

YES = frozenset({"y", "yes", "true", "on", "1"})
NO = frozenset({"n", "no", "false", "off", "0"})


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form."""

    name: str
    label: str
    type: str
    required: bool
    default: Any
    choices: tuple[tuple[str, str], ...]
    """Values that may be chosen, and their names."""
    least: float | None
    most: float | None
    """Limits: of a number itself, of the length of a text, of how many are chosen."""

    def question(self) -> LineQuestion:
        """Create the question that asks for it."""
        return LineQuestion(self.label, self._hint(), self._wrong)

    def listed(self) -> str:
        """Return the choices as a numbered list."""
        return "\n".join(f"{n} {safe_line(title)}" for n, (_, title) in enumerate(self.choices, 1))

    def read(self, text: str) -> Any:
        """Return the value an answer means; None leaves the field out. Raises `ValueError` that says what is wrong."""
        text = text.strip()
        if not text:
            if self.default is not None:
                return self.default
            if self.required:
                raise ValueError("this one is needed")
            return None
        if self.type == "array":
            values = [self._chosen(part.strip()) for part in text.split(",") if part.strip()]
            self._check(len(values), "choose")
            return values
        if self.choices:
            return self._chosen(text)
        if self.type == "boolean":
            if text.lower() not in YES | NO:
                raise ValueError("yes or no?")
            return text.lower() in YES
        if self.type in ("integer", "number"):
            return self._number(text)
        self._check(len(text), "its length must be")
        return text

    def _number(self, text: str) -> int | float:
        try:
            number = int(text) if self.type == "integer" else float(text)
        except ValueError:
            raise ValueError("a whole number, please" if self.type == "integer" else "a number, please") from None
        if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124  (JSON knows neither)
            raise ValueError("a number, please")
        self._check(number, "it must be")
        return number

    def _chosen(self, text: str) -> str:
        for n, (value, title) in enumerate(self.choices, 1):
            if text in (str(n), value) or text.lower() == title.lower():
                return value
        raise ValueError(f"{text} is not among them")

    def _check(self, number: float, what: str) -> None:
        if self.least is not None and number < self.least:
            raise ValueError(f"{what} at least {self.least:g}")
        if self.most is not None and number > self.most:
            raise ValueError(f"{what} at most {self.most:g}")

    def _wrong(self, text: str) -> str:
        try:
            self.read(text)
        except ValueError as e:
            return str(e)
        return ""

    def _hint(self) -> str:
        kind = {"integer": "a whole number", "number": "a number", "boolean": "yes or no"}.get(self.type, "")
        if self.type == "array":
            kind = "several, with commas"
        if self.default is not None:
            kind = ", ".join(filter(None, (kind, f"Enter for {self.default}")))
        elif not self.required:
            kind = ", ".join(filter(None, (kind, "Enter to leave out")))
        return ", ".join(filter(None, (kind, "Esc to decline")))


def form_fields(params: dict[str, Any]) -> Iterator[FormField]:
    """Yield the fields of a form, whatever the agent sent."""
    schema = _object(params.get("requestedSchema"))
    required: Any = schema.get("required")
    needed = cast("list[Any]", required) if isinstance(required, list) else []
    for name, schema_of_field in _object(schema.get("properties")).items():
        field = _object(schema_of_field)
        kind = str(field.get("type", "string"))
        title = str(field.get("title") or name)
        about = field.get("description")
        bounds = {
            "string": ("minLength", "maxLength"),
            "array": ("minItems", "maxItems"),
        }.get(kind, ("minimum", "maximum"))
        least, most = (_number(field.get(bound)) for bound in bounds)
        choices = tuple(_choices(_object(field.get("items")) if kind == "array" else field))
        label = f"{title}: {about}" if about else title
        yield FormField(name, label, kind, name in needed, field.get("default"), choices, least, most)


def _choices(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for value in cast("list[Any]", schema.get("enum") or ()):
        yield str(value), str(value)
    for choice in cast("list[Any]", schema.get("oneOf") or schema.get("anyOf") or ()):
        value = _object(choice).get("const")
        if value is not None:
            yield str(value), str(_object(choice).get("title") or value)


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) else None
