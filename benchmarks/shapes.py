"""The named instances of the planner's benchmark, and the gaps wanted of them."""

import sys
from dataclasses import dataclass, replace
from typing import Final

from lab.synthetic.shape import ClusterShape
from model.errors import ConfigError

TO_PRICE_OF_MANY: Final = 200
"""Brokers from which on a move costs a tenth: its share of F is smaller there."""

TOLERANCE: Final = 0.10
"""Tolerance of every goal that does not say otherwise."""

OVER: Final = 0.03
"""How far from the best plan known a plan of a hard case may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """A gap to reach within a limit of work."""

    work: float
    """`SolveLimits.work`, about seconds of one core."""
    gap: float | None = None
    """Wanted gap as a share of the best bound proved; 0 for a proof that the plan is
    optimal, None where another figure is what counts."""
    over: float | None = None
    """Wanted distance from the best plan known, as a share of it; one price of a move
    is allowed besides."""
    besides: str = ""
    """What else is wanted, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(ClusterShape):
    """What an instance looks like; with a seed it is an instance.

    One replica lies on shared storage, more on the brokers' disks.
    """

    name: str
    band: float | None = None
    """Tolerance of the objective `band`; None for `variance`. Replicas on disks lie in a remote
    tier then, with a twentieth of their bytes local, so that each move costs one price."""
    case: str = ""
    """Name of the cluster of `tests/cases/` that this is, whatever the seed, which is then that of
    the search; empty for a generated cluster."""
    default_goals: bool = False
    """Goals as the command line has them without settings; the tolerance comes first then."""
    aims: tuple[Aim, ...] = ()

    @property
    def move_price(self) -> float:
        """lambda."""
        if self.band is not None:
            return 1.0
        if self.default_goals:
            return TOLERANCE * self.brokers / self.partitions
        return 1e-4 if self.brokers >= TO_PRICE_OF_MANY else 1e-3

    def aim_within(self, work: float) -> Aim:
        """What is wanted within a limit of work; nothing where no aim names it."""
        found = [aim for aim in self.aims if aim.work == work]
        return found[0] if found else Aim(work=work)


def _aims(*pairs: tuple[float, float | None], besides: str = "") -> tuple[Aim, ...]:
    return tuple(Aim(work=work, gap=gap, besides=besides) for work, gap in pairs)


def _steep(shape: Shape) -> Shape:
    """The shape with few topics and partitions that have most of the load."""
    return replace(shape, topic_skew=1.3, partition_skew=0.8, largest=0.6)


SHAPES: Final = (
    Shape(name="3x60", brokers=3, partitions=60, aims=_aims((0.5, 0.0), (2, 0.0))),
    Shape(
        name="u5",
        case="u5",
        default_goals=True,
        brokers=5,
        partitions=60,
        rf=3,
        racks=3,
        aims=_aims((20, 0.001), besides="at most 3 CPU s"),
    ),
    Shape(
        name="5x60-rf3",
        default_goals=True,
        brokers=5,
        partitions=60,
        rf=3,
        racks=3,
        aims=_aims((20, 0.001), besides="at most 3 CPU s"),
    ),
    Shape(
        name="d12",
        case="d12",
        default_goals=True,
        brokers=12,
        partitions=24,
        rf=2,
        racks=12,
        young=False,
        aims=_aims((20, 0.03)),
    ),
    *(
        _steep(
            Shape(
                name=f"6x{partitions}-rf{rf}",
                default_goals=True,
                brokers=6,
                partitions=partitions,
                rf=rf,
                racks=3,
                young=False,
                aims=_aims((20, 0.0), besides="at most 3 CPU s"),
            )
        )
        for partitions, rf in ((3, 3), (6, 2))
    ),
    Shape(
        name="6x60-rf3",
        brokers=6,
        partitions=60,
        rf=3,
        racks=3,
        aims=_aims((0.5, 0.0), (2, 0.0), (5, 0.0)),
    ),
    Shape(
        name="10x500",
        brokers=10,
        partitions=500,
        aims=_aims((1, 0.02), (3, 0.04), (10, 0.02), (60, 0.012)),
    ),
    Shape(
        name="10x500-hot", brokers=10, partitions=500, hot=True, aims=_aims((3, 0.04), (10, 0.02))
    ),
    Shape(
        name="50x5000",
        brokers=50,
        partitions=5_000,
        aims=_aims((10, 0.015), (20, 0.02), besides="first plan under 0.5 s"),
    ),
    Shape(
        name="50x5000-unequal",
        brokers=50,
        partitions=5_000,
        unequal=True,
        partition_skew=0.8,
        aims=_aims((20, None)),
    ),
    Shape(
        name="200x40000",
        brokers=200,
        partitions=40_000,
        aims=_aims((30, 0.10), (60, 0.07), besides="first plan under 5 s"),
    ),
    Shape(
        name="1000x200000",
        brokers=1_000,
        partitions=200_000,
        aims=_aims((60, 0.09), (150, 0.10), besides="under 1 GiB"),
    ),
    Shape(
        name="1000x200000-two-sizes",
        brokers=1_000,
        partitions=200_000,
        two_sizes=True,
        topic_skew=1.0,
        partition_skew=0.5,
        aims=_aims((60, 0.05), besides="first plan under 15 s"),
    ),
    Shape(name="9x500-rf3", brokers=9, partitions=500, rf=3, racks=3, aims=_aims((10, 0.025))),
    Shape(
        name="9x500-rf3-unequal",
        brokers=9,
        partitions=500,
        rf=3,
        racks=3,
        unequal=True,
        aims=_aims((10, 0.02)),
    ),
    Shape(
        name="12x500-rf3-drain",
        brokers=12,
        partitions=500,
        rf=3,
        racks=3,
        drain=True,
        aims=_aims((10, 0.02)),
    ),
    Shape(
        name="9x500-rf3-near-level",
        brokers=9,
        partitions=500,
        rf=3,
        racks=3,
        young=False,
        nearly_balanced=True,
        aims=_aims((10, 0.02)),
    ),
    Shape(
        name="9x500-rf3-skewed",
        brokers=9,
        partitions=500,
        rf=3,
        racks=3,
        topic_skew=1.3,
        partition_skew=0.8,
        aims=(Aim(work=10, over=OVER),),
    ),
    Shape(
        name="9x500-rf3-giants",
        brokers=9,
        partitions=500,
        rf=3,
        racks=3,
        large_partitions=True,
        aims=(Aim(work=10, over=OVER),),
    ),
    _steep(
        Shape(
            name="9x500-rf3-steep",
            brokers=9,
            partitions=500,
            rf=3,
            racks=3,
            aims=(Aim(work=10, over=OVER),),
        )
    ),
    Shape(name="51x5000-rf3", brokers=51, partitions=5_000, rf=3, racks=3, aims=_aims((25, 0.007))),
    _steep(
        Shape(
            name="51x5000-rf3-steep",
            brokers=51,
            partitions=5_000,
            rf=3,
            racks=3,
            aims=(Aim(work=25, over=OVER),),
        )
    ),
    Shape(
        name="201x40000-rf3", brokers=201, partitions=40_000, rf=3, racks=3, aims=_aims((90, 0.015))
    ),
    Shape(
        name="215x930000-rf3",
        brokers=215,
        partitions=930_000,
        rf=3,
        racks=3,
        aims=_aims((300, None), besides="plan and bound, under 6 GiB"),
    ),
    Shape(
        name="10x500-giants",
        brokers=10,
        partitions=500,
        large_partitions=True,
        aims=(Aim(work=10, over=OVER), Aim(work=60, gap=0.10, over=OVER)),
    ),
    _steep(Shape(name="10x500-steep", brokers=10, partitions=500, aims=(Aim(work=10, over=OVER),))),
    _steep(
        Shape(
            name="50x5000-steep-two-sizes",
            brokers=50,
            partitions=5_000,
            two_sizes=True,
            aims=(Aim(work=25, gap=0.30, over=OVER),),
        )
    ),
    Shape(
        name="50x5000-giants",
        brokers=50,
        partitions=5_000,
        large_partitions=True,
        aims=(Aim(work=30, gap=0.30, over=OVER),),
    ),
    Shape(
        name="10x500-near-level",
        brokers=10,
        partitions=500,
        young=False,
        nearly_balanced=True,
        aims=(Aim(work=10, over=OVER),),
    ),
    Shape(
        name="50x5000-near-level",
        brokers=50,
        partitions=5_000,
        young=False,
        nearly_balanced=True,
        aims=(Aim(work=30, over=OVER),),
    ),
    Shape(
        name="10x500-drain", brokers=10, partitions=500, drain=True, aims=(Aim(work=10, over=OVER),)
    ),
    Shape(
        name="50x5000-drain",
        brokers=50,
        partitions=5_000,
        drain=True,
        aims=(Aim(work=30, over=OVER),),
    ),
    Shape(
        name="10x500-band", brokers=10, partitions=500, band=0.09, aims=_aims((0.5, 0.0), (5, 0.0))
    ),
    Shape(
        name="50x5000-band",
        brokers=50,
        partitions=5_000,
        band=0.09,
        aims=_aims((5, 0.10), (30, 0.0)),
    ),
    Shape(
        name="24x5000-rf3-band",
        brokers=24,
        partitions=5_000,
        rf=3,
        racks=3,
        band=0.09,
        aims=_aims((10, 0.02)),
    ),
    Shape(
        name="24x5000-rf3-band-2",
        brokers=24,
        partitions=5_000,
        rf=3,
        racks=3,
        band=0.02,
        aims=_aims((10, 0.02)),
    ),
    Shape(
        name="40x16667-rf3-dead-band",
        brokers=40,
        partitions=16_667,
        rf=3,
        racks=3,
        young=False,
        dead=True,
        band=0.09,
        aims=_aims((20, None), besides="a plan"),
    ),
    Shape(
        name="60x20000-rf3-band",
        brokers=60,
        partitions=20_000,
        rf=3,
        racks=3,
        band=0.09,
        aims=_aims((60, 0.05)),
    ),
)


def shape_of(name: str) -> Shape:
    """The shape of this name.

    Raises
    ------
    ConfigError
        No shape has this name.
    """
    for shape in SHAPES:
        if shape.name == name:
            return shape
    known = ", ".join(shape.name for shape in SHAPES)
    raise ConfigError(f"there is no instance {name!r}; there are {known}")


def shapes_of(names: str) -> tuple[Shape, ...]:
    """The shapes of names joined by commas; ends the program where one is unknown."""
    try:
        return tuple(shape_of(name) for name in names.split(","))
    except ConfigError as exc:
        sys.exit(str(exc))
