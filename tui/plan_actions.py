"""Keys of the plan screen; none of them changes the cluster."""

from textual.binding import Binding

PLAN_KEYS = [
    Binding(
        "d",
        "drop_move",
        "Remove",
        tooltip="Remove the selected move; keep the others as far as the rules allow",
        id="plan.drop",
    ),
    Binding(
        "p",
        "pin_partition",
        "Pin",
        tooltip="Choose the brokers of this partition, and replan",
        show=False,
        id="plan.pin",
    ),
    Binding(
        "u",
        "take_back",
        "Undo",
        tooltip="Undo the last request and restore the plan from before it",
        id="plan.undo",
    ),
    Binding(
        "g",
        "edit_goals",
        "Goals",
        tooltip="Edit goals, weights and limits for this session, and replan",
        id="plan.goals",
    ),
    Binding(
        "E",
        "next_effort",
        "Effort",
        tooltip="Plan at the next effort: quick changes leaders only, good, best searches longest",
        show=False,
        id="plan.effort",
    ),
    Binding(
        "f",
        "frontier",
        "Frontier",
        tooltip="Show which balance each number of moves achieves, and pick a point",
        id="plan.frontier",
    ),
    Binding(
        "w",
        "what_if",
        "What-if",
        tooltip="Plan for other brokers or traffic; changes nothing",
        id="plan.what_if",
    ),
    Binding(
        "b",
        "use_best",
        "Best so far",
        tooltip="End the search, or the frontier, with the best result so far",
        show=False,
        id="plan.best",
    ),
    Binding(
        "e",
        "export",
        "Export",
        tooltip="Write the plan and its rollback, also as Kafka reassignment JSON",
        show=False,
        id="plan.export",
    ),
    Binding(
        "c",
        "copy_command",
        "Copy",
        tooltip="Copy the plan as kafka-reassign-partitions commands",
        show=False,
        id="plan.copy",
    ),
    Binding("escape", "back", "Back", show=False, id="plan.back"),
]
