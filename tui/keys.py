"""Keys that lead from screen to screen."""

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
        "minus",
        "previous_mode",
        "Previous screen",
        tooltip="Go back to the screen that was open before",
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
        tooltip="Start no move for now; again, and the run goes on",
        show=False,
        id="run.pause",
    ),
    Binding(
        "T",
        "throttle",
        "Throttle",
        tooltip="Let moves copy at another rate while the run goes on",
        show=False,
        id="run.throttle",
    ),
    Binding(
        "R",
        "resume",
        "Resume",
        tooltip="Go on with the newest run, which did not come to its end",
        show=False,
        id="run.resume",
    ),
]
