"""The times of launches as the times of layers: a loop is one layer, however many launches its iterations are."""

from collections.abc import Mapping, Sequence

from mlirt.runtime.told_names import told_name


def times_of_layers(
    launches: Sequence[tuple[str, float]], records: Sequence[Mapping[str, object]]
) -> list[tuple[str, float]]:
    """(layer, milliseconds), a loop at its first launch; `records` are those of the plan.

    Records that are not one for each launch say nothing of them.
    """
    if len(records) != len(launches):
        return list(launches)
    found: list[tuple[str, float]] = []
    places: dict[str, int] = {}
    for (layer, milliseconds), record in zip(launches, records, strict=True):
        loop = record.get("loop")
        if not isinstance(loop, str):
            found.append((told_name({**record, "name": layer}), milliseconds))
        elif loop not in places:
            places[loop] = len(found)
            found.append((loop, milliseconds))
        else:
            found[places[loop]] = (loop, found[places[loop]][1] + milliseconds)
    return found
