"""Questions to the user as forms: permissions with all that is to be permitted (P13), and what agents ask otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from holdfast.model import Elicitation, Permission, is_object
from holdfast.view.paths import with_short_paths
from holdfast.view.tool_calls import call_in_question
from holdfast_app.html import draw_call
from holdfast_app.html.escaping import is_web_address
from holdfast_app.web.elements import Markup, element, join

if TYPE_CHECKING:
    from holdfast.model import Update
    from holdfast_app.web.watching import Asked

_FORMATS = {"email": "email", "uri": "url", "date": "date", "date-time": "datetime-local"}


def draw_question(name: str, asked: Asked, cwd: str) -> Markup:
    """Return the form of a question in a session of the directory `cwd`.

    Its fields and buttons say what `holdfast_app.web.actions` takes as an answer.
    """
    question = asked.question
    if isinstance(question, Permission):
        title, body, actions = question.title, _permission(question, asked, cwd), _choices(question)
    else:
        message = question.params.get("message")
        title = message if isinstance(message, str) else "The agent asks"
        body = _form(question) if question.mode == "form" else _address(question)
        actions = _buttons(question)
    heading = f"{name}-heading"
    return element(
        "form",
        element("h2", title, id=heading),
        body,
        element("p", class_="error", role="alert"),
        element("div", actions, class_="actions"),
        class_="question",
        data_question=name,
        aria_labelledby=heading,
    )


# Permissions


def _permission(question: Permission, asked: Asked, cwd: str) -> Markup:
    shown = question.shown_call()
    kind = shown.get("kind") or (asked.known.members.get("kind") if asked.known is not None else "")
    call = with_short_paths(call_in_question(asked.known, shown), cwd)
    call = replace(call, kind=kind if isinstance(kind, str) and kind != "other" else "")
    why = None if question.description is None else element("p", question.description)
    return join(
        why,
        element(
            "div", Markup(draw_call(call)), class_="asked", tabindex=0, role="group", aria_label="What is asked for"
        ),
    )


def _choices(question: Permission) -> Markup:
    styles = {"allow_once": "primary", "allow_always": "", "reject_once": "danger", "reject_always": "danger quiet"}
    return join(
        *(
            element(
                "button",
                option.name,
                type="submit",
                name="option",
                value=option.id,
                class_=styles.get(option.kind, ""),
                data_kind=option.kind,
            )
            for option in question.options
        )
    )


# Forms


def _buttons(question: Elicitation) -> Markup:
    accept = "Send" if question.mode == "form" else "I have done it"
    return join(
        element("button", accept, type="submit", name="action", value="accept", class_="primary"),
        element("button", "Decline", type="submit", name="action", value="decline", formnovalidate=True),
        element("button", "Cancel", type="submit", name="action", value="cancel", formnovalidate=True, class_="quiet"),
    )


def _address(question: Elicitation) -> Markup:
    url = question.params.get("url")
    if not isinstance(url, str) or not is_web_address(url):
        return element("p", "It names an address that is none of the web: ", element("code", str(url)))
    link = element("a", url, href=url, target="_blank", rel="noopener noreferrer")
    return element("p", "It asks you to visit ", link)


def _form(question: Elicitation) -> Markup:
    schema: Any = question.params.get("requestedSchema")
    fields: Any = schema.get("properties") if is_object(schema) else None
    required: Any = schema.get("required") if is_object(schema) else None
    names = frozenset(cast("list[str]", required)) if isinstance(required, list) else frozenset[str]()
    if not is_object(fields):
        return join()
    return join(*(_field(name, field, is_required=name in names) for name, field in fields.items() if is_object(field)))


def _field(name: str, field: Update, *, is_required: bool) -> Markup:
    label = _text(field, "title") or name
    about = _text(field, "description")
    control = _control(name, field, is_required=is_required)
    described = None if about is None else element("small", about)
    if field.get("type") == "boolean":
        return element("label", control, element("span", label), described, class_="switch")
    return element("label", element("span", f"{label}{' *' if is_required else ''}"), control, described)


def _control(name: str, field: Update, *, is_required: bool) -> Markup:
    kind, default = field.get("type"), field.get("default")
    choices = _offered(field)
    match kind:
        case "boolean":
            return element("input", type="checkbox", name=name, data_type="boolean", checked=default is True)
        case "integer" | "number":
            return element(
                "input",
                type="number",
                name=name,
                data_type=kind,
                required=is_required,
                value=_value(default),
                min=_value(field.get("minimum")),
                max=_value(field.get("maximum")),
                step="1" if kind == "integer" else "any",
            )
        case "array":
            items: Any = field.get("items")
            several = _offered(items) if is_object(items) else []
            chosen = cast("list[Any]", default) if isinstance(default, list) else []
            return element(
                "select", *_options(several, chosen), name=name, multiple=True, data_type="array", required=is_required
            )
        case _ if choices:
            empty = [] if is_required else [element("option", "", value="")]
            return element(
                "select", *empty, *_options(choices, [default]), name=name, data_type="string", required=is_required
            )
        case _:
            return element(
                "input",
                type=_FORMATS.get(str(field.get("format")), "text"),
                name=name,
                data_type="string",
                required=is_required,
                value=_value(default),
                minlength=_value(field.get("minLength")),
                maxlength=_value(field.get("maxLength")),
                autocomplete="off",
            )


def _offered(field: Update) -> list[tuple[str, str]]:
    """Return the values that a field lists, with what they are called."""
    names: Any = field.get("enumNames")
    for member in ("enum", "oneOf", "anyOf"):
        listed: Any = field.get(member)
        if isinstance(listed, list):
            found: list[tuple[str, str]] = []
            for at, option in enumerate(cast("list[Any]", listed)):
                value = option.get("const") if is_object(option) else option
                title = option.get("title") if is_object(option) else None
                if title is None and isinstance(names, list) and at < len(cast("list[Any]", names)):
                    title = cast("list[Any]", names)[at]
                found.append((str(value), str(title or value)))
            return found
    return []


def _options(choices: list[tuple[str, str]], chosen: list[Any]) -> list[Markup]:
    return [element("option", title, value=value, selected=value in chosen) for value, title in choices]


def _text(field: Update, name: str) -> str | None:
    value = field.get(name)
    return value if isinstance(value, str) and value else None


def _value(value: object) -> str | None:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
