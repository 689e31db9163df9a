"""Which member of a consumer group reads which partition.

The spread is even, the same for everybody who computes it, and sticky: a partition moves only if its member
left, or if the move makes the spread more even.

    A: 0 1    B: 2 3    C joins ──>    A: 0 1    B: 3    C: 2    A leaves ──>    B: 0 3    C: 1 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

Slot = tuple[int, int]
"""A topic's number and a partition of it."""


def spread(owners: Mapping[Slot, str], wanted: Mapping[Slot, tuple[str, ...]]) -> dict[Slot, str]:
    """Who owns each slot from now on, given who did and which members, in order, want it.

    >>> spread({(1, 0): "a", (1, 1): "a"}, {(1, 0): ("a", "b"), (1, 1): ("a", "b")})
    {(1, 0): 'b', (1, 1): 'a'}
    """
    held: dict[tuple[str, ...], dict[str, list[Slot]]] = {}
    load: Counter[str] = Counter()

    def give(slot: Slot, member: str) -> None:
        held.setdefault(wanted[slot], {}).setdefault(member, []).append(slot)
        load[member] += 1

    slots = sorted(slot for slot, members in wanted.items() if members)
    free = [slot for slot in slots if owners.get(slot) not in wanted[slot]]
    for slot in sorted(set(slots).difference(free), reverse=True):
        give(slot, owners[slot])
    for slot in free:
        give(slot, min(wanted[slot], key=lambda member: (load[member], member)))
    while True:
        gain, members, giver, taker = max(
            (_best_move(members, parts, load) for members, parts in held.items()),
            default=(0, (), "", ""),
        )
        if gain < 2:
            break
        load[giver] -= 1
        give(held[members][giver].pop(), taker)
    owned = {slot: member for parts in held.values() for member, mine in parts.items() for slot in mine}
    return {slot: owned[slot] for slot in slots}


def _best_move(
    members: tuple[str, ...], parts: Mapping[str, list[Slot]], load: Mapping[str, int]
) -> tuple[int, tuple[str, ...], str, str]:
    """The move that evens out the most among slots that the same members want, and by how much."""
    giver = max(
        (member for member, slots in parts.items() if slots), key=lambda member: (load[member], member)
    )
    taker = min(members, key=lambda member: (load[member], member))
    return load[giver] - load[taker], members, giver, taker
