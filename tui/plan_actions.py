"""Keys of the plan screen. None of them changes a cluster."""

from textual.binding import Binding

PLAN_KEYS = [
    Binding(
        "d",
        "drop_move",
        "Drop",
        tooltip="Remove the move under the cursor; the others stay where rules allow",
        id="plan.drop",
    ),
    Binding(
        "p",
        "pin_partition",
        "Pin",
        tooltip="Name the brokers on which this partition is to lie; plan anew",
        show=False,
        id="plan.pin",
    ),
    Binding(
        "u",
        "take_back",
        "Undo",
        tooltip="Undo the last request; restores the plan from before it",
        show=False,
        id="plan.undo",
    ),
    Binding(
        "g",
        "edit_goals",
        "Goals",
        tooltip="Edit goals, weights and limits for this session; plan anew",
        id="plan.goals",
    ),
    Binding(
        "f",
        "frontier",
        "Frontier",
        tooltip="Show what balance can be had for how many moves, and pick a point",
        id="plan.frontier",
    ),
    Binding(
        "w",
        "what_if",
        "What-if",
        tooltip="Suppose other brokers or traffic, and plan that; changes nothing",
        id="plan.what_if",
    ),
    Binding(
        "b",
        "use_best",
        "Best so far",
        tooltip="End the solve, or the frontier, with the best found so far",
        show=False,
        id="plan.best",
    ),
    Binding(
        "e",
        "export",
        "Export",
        tooltip="Write the plan, its way back and both as JSON of Kafka's tools",
        show=False,
        id="plan.export",
    ),
    Binding(
        "c",
        "copy_command",
        "Copy",
        tooltip="Copy the plan as commands with kafka-reassign-partitions",
        show=False,
        id="plan.copy",
    ),
    Binding("escape", "back", "Back", show=False, id="plan.back"),
]
