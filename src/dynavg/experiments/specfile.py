"""Specs in files: TOML in, overrides, and mistakes said so that people can mend them."""

import difflib
import json
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from dynavg.experiments.spec import Settings, Spec

__all__ = ["SpecError", "load", "overridden", "parsed", "to_toml"]


class SpecError(ValueError):
    """A spec that cannot be run; the message names the key and what is allowed."""


def load(path: Path, overrides: Iterable[str] = ()) -> Spec:
    """The spec in a TOML file, with "key=value" overrides laid over it."""
    if not path.is_file():
        raise SpecError(f"no spec at {path}: the path of a TOML file is wanted")
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is no TOML: {error}") from None
    return parsed(overridden(tree, overrides), str(path))


def parsed(tree: Settings, where: str) -> Spec:
    """The spec in a tree of plain values; `where` names it in errors."""
    try:
        return Spec.model_validate(tree)
    except ValidationError as error:
        told = "; ".join(_told(dict(one)) for one in error.errors())
        raise SpecError(f"{where}: {told}") from None


def overridden(tree: Settings, overrides: Iterable[str]) -> Settings:
    """The tree with values replaced; each override is "path.of.key=value", the value as in TOML
    (what is no TOML is taken as a word).

    >>> overridden({"rounds": 5, "optimizer": {"lr": 0.1}}, ["optimizer.lr=0.2", "model=mnist_cnn"])
    {'rounds': 5, 'optimizer': {'lr': 0.2}, 'model': 'mnist_cnn'}
    """
    made: Settings = json.loads(json.dumps(tree, default=str))
    for override in overrides:
        path, equals, text = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise SpecError(f"--set {override}: key=value is wanted, such as optimizer.lr=0.05")
        place: Any = made
        for key in keys[:-1]:
            place = _entered(place, key, override)
        if isinstance(place, list):
            place[_place(place, keys[-1], override)] = _value(text)
        else:
            place[keys[-1]] = _value(text)
    return made


def _entered(place: Any, key: str, override: str) -> Any:
    if isinstance(place, list):
        return place[_place(place, key, override)]
    inner = place.setdefault(key, {})
    if not isinstance(inner, dict | list):
        raise SpecError(f"--set {override}: {key} is {inner!r}, not a table")
    return inner


def _place(entries: Sequence[object], key: str, override: str) -> int:
    if not key.isdigit() or int(key) >= len(entries):
        raise SpecError(f"--set {override}: {key!r} is not one of 0 to {len(entries) - 1}")
    return int(key)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def _told(error: dict[str, Any]) -> str:
    """One mistake: where, what came, what is allowed."""
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] != "extra_forbidden":
        message = error["msg"].removeprefix("Value error, ")
        message = message.replace("a valid tuple", "a list")  # TOML knows no tuples
        return f"{path}: {message}" if path else message
    key = str(error["loc"][-1])
    known = _known_keys(error["loc"][:-1])
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{path}: no such key; {hint}known are {', '.join(sorted(known))}"


def _known_keys(path: Sequence[int | str]) -> list[str]:
    """The keys that the part of a spec at that path may have."""
    model: type[BaseModel] = Spec
    for part in path:
        for candidate in _models_in(model.model_fields.get(str(part))):
            model = candidate
            break
        else:
            kinds = {_kind(one): one for one in _models_in(Spec.model_fields["data"])}
            model = next((one for kind, one in kinds.items() if str(part) in kind), model)
    return list(model.model_fields)


def _models_in(field: Any) -> list[type[BaseModel]]:
    annotation = getattr(field, "annotation", None)
    options = getattr(annotation, "__args__", (annotation,))
    return [one for one in options if isinstance(one, type) and issubclass(one, BaseModel)]


def _kind(model: type[BaseModel]) -> tuple[str, ...]:
    """The kinds that a part of a spec is chosen by."""
    field = model.model_fields.get("kind")
    return tuple(getattr(field.annotation, "__args__", ())) if field else ()


def to_toml(spec: Spec) -> str:
    """The spec as TOML that `load` reads back; what has its default is left out."""
    tree = spec.model_dump(exclude_defaults=True)
    return "".join(f"{key} = {_toml(value)}\n" for key, value in tree.items() if value is not None)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = (f"{_key(k)} = {_toml(v)}" for k, v in value.items() if v is not None)
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)
