"""Key bindings that switch screens and control the run."""

from textual.binding import Binding

from tui.viewmodel.modes import MODES

MODE_KEYS = [
    *(
        Binding(
            str(number),
            f"show_mode('{mode.name}')",
            mode.title,
            tooltip=mode.purpose,
            show=False,
            id=mode.binding,
        )
        for number, mode in enumerate(MODES, 1)
    ),
    Binding(
        "colon",
        "command",
        "Go to",
        tooltip="Open a screen, a broker or a topic by its name",
        show=False,
        key_display=":",
        id="app.command",
    ),
    Binding(
        "exclamation_mark",
        "problems",
        "Problems",
        tooltip="List what the header counts: brokers, disks and partitions in trouble",
        show=False,
        key_display="!",
        id="app.problems",
    ),
    Binding(
        "minus",
        "previous_mode",
        "Previous screen",
        tooltip="Go back to the previous screen",
        show=False,
        id="screen.previous",
    ),
    Binding(
        "escape",
        "show_mode('overview')",
        "Back",
        tooltip="Go back to the overview",
        show=False,
        id="screen.back",
    ),
]

RUN_KEYS = [
    Binding(
        "P",
        "pause_run",
        "Pause",
        tooltip="Start no further moves; press again to resume",
        show=False,
        id="run.pause",
    ),
    Binding(
        "T",
        "throttle",
        "Throttle",
        tooltip="Change the throttle of the run in progress",
        show=False,
        id="run.throttle",
    ),
    Binding(
        "R",
        "resume",
        "Resume",
        tooltip="Resume a paused run, or the most recent run if it did not finish",
        show=False,
        id="run.resume",
    ),
]
