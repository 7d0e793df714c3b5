"""Who is there, who is awaited, who has gone."""

from dynavg.engines.fleet.attendance import Attendance
from dynavg.engines.fleet.config import FleetConfig

CONFIG = FleetConfig(
    learners=3, silence_seconds=10, report_seconds=2, answer_seconds=5, orphan_seconds=60
)


def attendance(came=(0, 1, 2)):
    made = Attendance(CONFIG, now=0.0)
    for id in came:
        made.come(id)
        made.hear(id, 0.0)
    return made


def test_the_first_to_come_wait_for_the_others():
    started = Attendance(CONFIG, now=0.0)
    assert [started.come(id) for id in (2, 0, 2)] == [(), (), ()]
    assert (started.started, started.awaited) == (False, 1)
    assert started.come(1) == (0, 1, 2)
    assert started.come(7) == (7,)


def test_who_has_left_the_lobby_is_awaited_again():
    started = attendance(came=(0, 1))
    started.go(1)
    assert started.come(2) == ()
    assert started.awaited == 1


def test_enough_waited_the_fleet_starts_with_those_who_are_there():
    late = attendance(came=(2, 0))
    assert late.start() == (0, 2)
    assert late.started


def test_the_silent_are_found_and_may_come_back():
    fleet = attendance()
    for now in range(2, 14, 2):
        fleet.hear(0, now)
        silent = fleet.silent([0, 1, 2], now)
    assert [id for id, _ in silent] == [1, 2]
    fleet.go(0)
    assert not fleet.finished([], 12 + 2 * CONFIG.answer_seconds)
    assert fleet.finished([], 12 + 2 * CONFIG.answer_seconds + 1)


def test_time_that_the_coordinator_has_slept_through_is_nobodys_fault():
    fleet = attendance()
    assert fleet.silent([0, 1, 2], 2.0) == []
    assert fleet.silent([0, 1, 2], 1000.0) == []
    assert fleet.silent([0, 1, 2], 1002.0) == []
    fleet.hear(1, 1011.0)
    assert [id for id, _ in fleet.silent([0, 1, 2], 1012.0)] == [0, 2]


def test_it_is_over_when_all_have_said_goodbye():
    fleet = attendance()
    for id in (0, 1):
        fleet.go(id)
    assert not fleet.finished([2], 1.0)
    fleet.go(2)
    assert fleet.finished([], 1.0)
    fleet.come(1)
    assert not fleet.finished([], 1.0)


def test_it_is_not_over_before_it_has_started():
    assert not attendance(came=(0,)).finished([], 1e9)
    alone = attendance(came=())
    alone.start()
    assert not alone.finished([], CONFIG.orphan_seconds)
    assert alone.finished([], CONFIG.orphan_seconds + 1)


def test_a_coordinator_that_takes_up_knows_whether_the_fleet_had_started():
    started, waiting, begun = (Attendance(CONFIG, now=0.0) for _ in range(3))
    started.take_up(known=[0, 1, 2], members=[0, 1], begun=False, now=5.0)
    waiting.take_up(known=[0], members=[0], begun=False, now=5.0)
    begun.take_up(known=[0], members=[0], begun=True, now=5.0)
    assert (started.started, waiting.started, begun.started) == (True, False, True)
    assert [waiting.come(id) for id in (1, 2)] == [(), (0, 1, 2)]
    assert started.absent([0, 1]) == []
    assert begun.absent([0]) == [1, 2]
