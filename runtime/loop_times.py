"""The times of launches as the times of layers: a loop is one layer, however many launches its iterations are."""

from collections.abc import Mapping, Sequence

from mlirt.runtime.told_names import numbered, told_name


def times_of_layers(
    launches: Sequence[tuple[str, float]], records: Sequence[Mapping[str, object]]
) -> list[tuple[str, float]]:
    """(layer, milliseconds), a loop at its first launch, each layer with a name of its own; `records` are the plan's.

    Records that are not one for each launch say nothing of them.
    """
    if len(records) != len(launches):
        return list(launches)
    named = times_of_launches(launches, records)
    found: list[tuple[str, float]] = []
    places: dict[str, int] = {}
    for record, (layer, milliseconds) in zip(records, named, strict=True):
        loop = record.get("loop")
        if not isinstance(loop, str):
            found.append((layer, milliseconds))
        elif loop not in places:
            places[loop] = len(found)
            found.append((loop, milliseconds))
        else:
            found[places[loop]] = (loop, found[places[loop]][1] + milliseconds)
    return found


def times_of_launches(
    launches: Sequence[tuple[str, float]], records: Sequence[Mapping[str, object]]
) -> list[tuple[str, float]]:
    """(name, milliseconds) of each launch, by the names that the inspector tells, each a name of its own."""
    if len(records) != len(launches):
        return list(launches)
    named = numbered([{**record, "name": layer} for record, (layer, _) in zip(records, launches, strict=True)])
    return [(told_name(record), milliseconds) for record, (_, milliseconds) in zip(named, launches, strict=True)]
