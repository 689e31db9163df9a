"""One Python value made ready for one column: either exactly, or refused with the reason.

A coercer takes a value that is not None and gives one that Arrow takes as it is, or raises `Refusal`. There
are three dialects. *python*: what the classes of Python say, and ISO 8601 text for times and decimals.
*json*: as python, and base64 text for BINARY, decimal numbers for DOUBLE, "NaN" and "Infinity" as text.
*text*: every value is a cell of a text file.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Context, DecimalException, Inexact, Rounded
from decimal import Decimal as PyDecimal
from operator import index
from typing import Any

import numpy as np

from evert.schema.types import Atom, DataType, Decimal, Interval, Text, Time

Coercer = Callable[[Any], Any]

_BOUNDS = {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31, "BIGINT": 2**63}
_FLOAT_WORDS = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
    "inf": math.inf,
    "-inf": -math.inf,
}
_EXACT = Context(prec=60, traps=[Inexact])
_DURATION = re.compile(r"([+-])?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{1,6}))?S)?)?")
_MICROSECOND = dt.timedelta(microseconds=1)
_FINER = re.compile(r"[.,]\d{6}\d*[1-9]")
_UTC = dt.timezone.utc  # noqa: UP017


class Refusal(ValueError):
    """A value that does not fit; the text says why."""


def coercer(kind: DataType, dialect: str) -> Coercer:
    """The coercer of a type that is not nested."""
    match kind:
        case Atom("BOOLEAN"):
            return _text_boolean if dialect == "text" else _boolean
        case Atom(name) if name in _BOUNDS:
            return _integer(name, text=dialect == "text")
        case Atom("FLOAT" | "DOUBLE" as name):
            return _floating(name, dialect)
        case Decimal():
            return _decimal(kind)
        case Text():
            return _text(kind)
        case Atom("BINARY"):
            return _binary if dialect == "python" else _base64
        case Atom("DATE"):
            return _date
        case Atom("TIMESTAMP"):
            return _timestamp
        case Atom("TIMESTAMP_NTZ"):
            return _timestamp_ntz
        case Time():
            return _time(kind)
        case Interval():
            return _interval(kind)
        case _:
            return _void


def said(value: Any) -> str:
    """A value as an error shows it: short, with its class."""
    shown = repr(value)
    return f"{shown if len(shown) <= 60 else shown[:57] + '...'} ({type(value).__name__})"


def _no(value: Any, kind: str) -> Refusal:
    return Refusal(f"{said(value)} is not a {kind}")


def _boolean(value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise _no(value, "BOOLEAN")


def _text_boolean(value: Any) -> bool:
    words = {"true": True, "false": False, "t": True, "f": False, "1": True, "0": False}
    found = words.get(str(value).strip().lower())
    if found is None:
        raise _no(value, "BOOLEAN")
    return found


def _integer(name: str, *, text: bool) -> Coercer:
    bound = _BOUNDS[name]

    def take(value: Any) -> int:
        if text and isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,40}\s*", value):
            value = int(value)
        if isinstance(value, bool | np.bool_):
            raise _no(value, name)
        try:
            number = index(value)
        except TypeError:
            raise _no(value, name) from None
        if not -bound <= number < bound:
            raise Refusal(f"{said(value)} is out of the range of {name}")
        return number

    return take


def _floating(name: str, dialect: str) -> Coercer:
    single = name == "FLOAT"

    def take(value: Any) -> float:
        if isinstance(value, bool | np.bool_):
            raise _no(value, name)
        if isinstance(value, str) and dialect != "python":
            return _float_of_text(value, name, numbers=dialect == "text", single=single)
        if isinstance(value, PyDecimal) and dialect == "json":
            number = float(value)
            if math.isinf(number):
                raise Refusal(f"{value} is too large for {name}")
        elif isinstance(value, float | np.floating):
            number = float(value)
            if dialect == "json" and math.isinf(number):
                raise Refusal(f"the number is too large for {name}")
        else:
            number = _exact_float(value, name)
        if single and math.isfinite(number):
            narrow = _narrowed(number)
            if math.isinf(narrow) or (
                not isinstance(value, float | np.floating | PyDecimal) and narrow != number
            ):
                raise Refusal(f"{said(value)} does not fit FLOAT")
        return number

    return take


def _narrowed(number: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def _float_of_text(text: str, name: str, *, numbers: bool, single: bool) -> float:
    stripped = text.strip()
    if stripped in _FLOAT_WORDS:
        return _FLOAT_WORDS[stripped]
    if not numbers:
        raise _no(text, name)
    try:
        number = float(stripped)
    except ValueError:
        raise _no(text, name) from None
    if math.isinf(_narrowed(number) if single else number) and stripped.strip("+-").lower() not in (
        "inf",
        "infinity",
    ):
        raise Refusal(f"{said(text)} is too large for {name}")
    return number


def _exact_float(value: Any, name: str) -> float:
    try:
        whole = index(value)
    except TypeError:
        raise _no(value, name) from None
    try:
        number = float(whole)
    except OverflowError:
        raise Refusal(f"the integer is too large for {name}") from None
    if int(number) != whole or abs(whole) > 2**53:
        raise Refusal(f"{said(value)} is an integer that {name} cannot hold exactly")
    return number


def _decimal(kind: Decimal) -> Coercer:
    unit = PyDecimal(1).scaleb(-kind.scale)
    name = kind.ddl()

    def take(value: Any) -> PyDecimal:
        if isinstance(value, PyDecimal):
            number = value
        elif isinstance(value, str):
            try:
                number = PyDecimal(value.strip())
            except DecimalException:
                raise _no(value, name) from None
        elif isinstance(value, bool | np.bool_ | float):
            raise Refusal(f"{said(value)} is not a {name}; give a Decimal, an int or text")
        else:
            try:
                number = PyDecimal(index(value))
            except TypeError:
                raise _no(value, name) from None
        if not number.is_finite():
            raise _no(value, name)
        if number and number.adjusted() >= kind.precision - kind.scale:
            raise Refusal(f"{said(value)} has too many digits before the point for {name}")
        try:
            return number.quantize(unit, context=_EXACT)
        except (Inexact, Rounded, DecimalException):
            raise Refusal(f"{said(value)} has too many digits after the point for {name}") from None

    return take


def _text(kind: Text) -> Coercer:
    def take(value: Any) -> str:
        if not isinstance(value, str):
            raise _no(value, kind.kind)
        text = str.__str__(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Refusal(f"{said(text)} is not valid Unicode text") from None
        if kind.length is not None and len(text) > kind.length:
            raise Refusal(f"has {len(text)} characters, and the column takes {kind.length}")
        return text

    return take


def _binary(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise _no(value, "BINARY")


def _base64(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _no(value, "base64 text for BINARY")
    try:
        return base64.b64decode(value.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise _no(value, "base64 text for BINARY") from None


def _date(value: Any) -> dt.date:
    if type(value) is dt.date:
        return value
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value.strip())
        except ValueError:
            raise _no(value, "DATE in ISO 8601 of the years 1 to 9999") from None
    if isinstance(value, np.datetime64) and np.datetime_data(value)[0] in ("Y", "M", "W", "D"):
        return _numpy_time(value, dt.date)
    raise _no(value, "DATE")


def _numpy_time(value: Any, wanted: type[Any]) -> Any:
    unit = "datetime64[D]" if wanted is dt.date else "datetime64[us]"
    found = value.astype(unit).item()
    if not isinstance(found, wanted) or value.astype(unit) != value:
        raise Refusal(f"{said(value)} cannot be held exactly")
    return found


def _moment(value: Any, name: str) -> dt.datetime:
    if isinstance(value, dt.datetime) and value == value:
        if getattr(value, "nanosecond", 0):
            raise Refusal(f"{said(value)} is finer than microseconds")
        return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    if isinstance(value, str):
        if _FINER.search(value):
            raise Refusal(f"{said(value)} is finer than microseconds")
        try:
            return dt.datetime.fromisoformat(value.strip())
        except ValueError:
            raise _no(value, f"{name} in ISO 8601 of the years 1 to 9999") from None
    if isinstance(value, np.datetime64):
        found: dt.datetime = _numpy_time(value, dt.datetime)
        return found
    raise _no(value, name)


def _timestamp(value: Any) -> dt.datetime:
    moment = _moment(value, "TIMESTAMP")
    if moment.utcoffset() is None:
        return moment.replace(tzinfo=_UTC)
    try:
        return moment.astimezone(_UTC)
    except OverflowError:
        raise Refusal(f"{said(value)} lies outside of the years 1 to 9999") from None


def _timestamp_ntz(value: Any) -> dt.datetime:
    moment = _moment(value, "TIMESTAMP_NTZ")
    if moment.tzinfo is not None:
        raise Refusal(f"{said(value)} has a time zone, and TIMESTAMP_NTZ has none")
    return moment


def _time(kind: Time) -> Coercer:
    def take(value: Any) -> dt.time:
        if isinstance(value, str):
            if _FINER.search(value):
                raise Refusal(f"{said(value)} is finer than {kind.ddl()} can hold")
            try:
                value = dt.time.fromisoformat(value.strip())
            except ValueError:
                raise _no(value, "TIME in ISO 8601") from None
        if not isinstance(value, dt.time):
            raise _no(value, "TIME")
        if value.tzinfo is not None:
            raise Refusal(f"{said(value)} has a time zone, and TIME has none")
        if value.microsecond % kind.grain:
            raise Refusal(f"{said(value)} is finer than {kind.ddl()} can hold")
        return value

    return take


def _interval(kind: Interval) -> Coercer:
    name = kind.ddl()

    def take(value: Any) -> dt.timedelta:
        if isinstance(value, str):
            length = _duration(value, name)
        elif isinstance(value, np.timedelta64) and np.datetime_data(value)[0] not in ("Y", "M"):
            found = value.astype("timedelta64[us]")
            if found != value:
                raise Refusal(f"{said(value)} cannot be held exactly")
            length = found.item()
        elif isinstance(value, dt.timedelta) and not getattr(value, "nanoseconds", 0) and value == value:
            length = dt.timedelta(value.days, value.seconds, value.microseconds)
        else:
            raise _no(value, name)
        micros = length // _MICROSECOND
        if not -(2**63) < micros < 2**63:
            raise Refusal(f"{said(value)} is too long for {name}")
        if micros % kind.grain:
            raise Refusal(f"{said(value)} is finer than {name} can hold")
        return length

    return take


def _duration(text: str, name: str) -> dt.timedelta:
    match = _DURATION.fullmatch(text.strip())
    if match is None or text.strip()[-1] in "PT":
        raise Refusal(f"{said(text)} is not a {name} in ISO 8601, such as P1DT2H30M4.5S")
    sign, days, hours, minutes, seconds, fraction = match.groups()
    try:
        length = dt.timedelta(
            days=int(days or 0),
            hours=int(hours or 0),
            minutes=int(minutes or 0),
            seconds=int(seconds or 0),
            microseconds=int((fraction or "0").ljust(6, "0")),
        )
    except (OverflowError, ValueError):
        raise Refusal(f"{said(text)} is too long for {name}") from None
    return -length if sign == "-" else length


def _void(value: Any) -> None:
    raise Refusal(f"{said(value)} is not NULL, and a VOID column holds nothing else")
