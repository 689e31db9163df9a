"""What a user's Python function is, apart from where it was loaded: its code and what it refers to.

A view of a function whose body was changed is another view. Spark has functions as pickled bytes, which name a
function of a module without its body, so it is looked at here.
"""

from __future__ import annotations

import re
from hashlib import sha256
from pickle import PicklingError
from types import CodeType, FunctionType
from typing import Any


def function_digest(command: Any) -> str:
    """The digest of a function as Catalyst holds it, a sequence of bytes."""
    content = bytes(int(number) & 255 for number in re.findall(r"-?\d+", command.toString()))
    return sha256(repr(_meaning(_loaded(content), set())).encode()).hexdigest()


def _loaded(content: bytes) -> Any:
    from pyspark.serializers import CloudPickleSerializer

    try:
        return CloudPickleSerializer().loads(content)
    except Exception:  # whatever unpickling a user's objects may raise: then the bytes stand for them
        return content


def _meaning(value: Any, seen: set[int]) -> Any:
    """A value as something that is printed the same in every process."""
    if isinstance(value, FunctionType):
        if id(value) in seen:
            return value.__qualname__
        seen.add(id(value))
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        used = {
            name: value.__globals__[name] for name in value.__code__.co_names if name in value.__globals__
        }
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, cells, sorted(used.items()))
        return [_meaning(part, seen) for part in parts]
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, [_meaning(one, seen) for one in value.co_consts]]
    if isinstance(value, list | tuple | set | frozenset):
        ordered = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [_meaning(one, seen) for one in ordered]
    if isinstance(value, dict):
        return [[_meaning(name, seen), _meaning(one, seen)] for name, one in value.items()]
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return value
    return getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or _pickled(value)


def _pickled(value: Any) -> Any:
    from pyspark.serializers import CloudPickleSerializer

    try:
        return CloudPickleSerializer().dumps(value)
    except (PicklingError, TypeError):  # what a module holds beside the function, such as a lock
        return type(value).__qualname__
