"""Decimals by value, whatever their scale: no zeros are left at the end of the fraction."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evert.trace.arrays import words

_LIMB = np.uint64(0xFFFFFFFF)
_TEN = np.uint64(10)
_HALF = np.uint64(32)


def by_value(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The unscaled values as rows of 64-bit words, the lowest first, and the scale of each; NULL is anything.

    >>> from decimal import Decimal
    >>> value, scale = by_value(pa.array([Decimal("1.50"), Decimal("-2.00"), Decimal("0.00")]))
    >>> value.tolist(), scale.tolist()
    ([[15, 0], [-2, -1], [0, 0]], [1, 0, 0])
    """
    if array.type.bit_width < 128:
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    value = words(array).astype("<i8")
    scale = np.full(len(array), array.type.scale, "<i8")
    if array.type.scale > 0 and len(array):
        low = value[:, 0]
        narrow = (value[:, 1:] == (low >> 63)[:, None]).all(axis=1)
        _strip_narrow(value, scale, np.flatnonzero(narrow))
        _strip_wide(value, scale, np.flatnonzero(~narrow))
    return value, scale


def _strip_narrow(value: np.ndarray, scale: np.ndarray, rows: np.ndarray) -> None:
    low = value[rows, 0]
    while len(rows):
        shorter = low // 10
        ends = (shorter * 10 == low) & (scale[rows] > 0)
        rows, low = rows[ends], shorter[ends]
        value[rows, 0] = low
        value[rows, 1:] = (low >> 63)[:, None]
        scale[rows] -= 1


def _strip_wide(value: np.ndarray, scale: np.ndarray, rows: np.ndarray) -> None:
    """Long division in limbs of 32 bits, on all the rows that still end in a zero at once."""
    negative = value[rows, -1] < 0
    limbs = _limbs(value[rows])
    limbs[negative] = _negated(limbs[negative])
    while len(rows):
        shorter, rest = np.empty_like(limbs), np.zeros(len(rows), np.uint64)
        for place in reversed(range(limbs.shape[1])):
            part = (rest << _HALF) | limbs[:, place]
            shorter[:, place] = part // _TEN
            rest = part % _TEN
        ends = (rest == 0) & (scale[rows] > 0)
        rows, limbs, negative = rows[ends], shorter[ends], negative[ends]
        signed = limbs.copy()
        signed[negative] = _negated(signed[negative])
        value[rows] = (signed[:, 0::2] | (signed[:, 1::2] << _HALF)).view("<i8")
        scale[rows] -= 1


def _limbs(value: np.ndarray) -> np.ndarray:
    whole = value.view(np.uint64)
    limbs = np.empty((len(value), 2 * value.shape[1]), np.uint64)
    limbs[:, 0::2] = whole & _LIMB
    limbs[:, 1::2] = whole >> _HALF
    return limbs


def _negated(limbs: np.ndarray) -> np.ndarray:
    """Two's complement: every bit turned round, plus one."""
    turned = limbs ^ _LIMB
    carry = np.ones(len(limbs), np.uint64)
    for place in range(limbs.shape[1]):
        turned[:, place] += carry
        carry = turned[:, place] >> _HALF
        turned[:, place] &= _LIMB
    return turned
