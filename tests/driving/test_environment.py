import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from dynavg.driving import ENVIRONMENT_ID
from dynavg.driving.environment import DrivingEnv


@pytest.mark.parametrize("conditions", ["noon", "rough"])
def test_it_passes_gymnasiums_checker(conditions: str) -> None:
    made = gymnasium.make(
        ENVIRONMENT_ID, track="narrow", conditions=conditions, render_mode="rgb_array"
    )
    check_env(made.unwrapped)


def test_the_same_seed_and_actions_give_the_same_episode() -> None:
    def episode() -> tuple[float, float, int]:
        env = DrivingEnv("narrow")
        picture, info = env.reset(seed=3, options={})
        total = float(picture.sum())
        for _ in range(3):
            picture, reward, *_, info = env.step(np.array([0.1], np.float32))
            total += float(picture.sum()) + float(reward)
        return total, info["along"], info["crossings"]

    assert episode() == episode()


def test_every_episode_has_other_conditions_where_none_are_given() -> None:
    env = DrivingEnv("narrow", conditions=None)
    first, _ = env.reset(seed=0, options={"start": 0.1})
    second, _ = env.reset(options={"start": 0.1})
    assert (first != second).any()


def test_the_reward_on_the_road_is_the_metres_made() -> None:
    env = DrivingEnv("narrow")
    env.reset(options={"start": 0.05})
    _, reward, terminated, truncated, info = env.step(np.zeros(1, np.float32))
    assert reward == pytest.approx(1.0, abs=0.01)  # 10 m/s for 0.1 s, on a straight
    assert not terminated
    assert not truncated
    assert info["outcome"] == "driving"


def test_leaving_the_road_terminates_and_costs_ten() -> None:
    env = DrivingEnv("narrow")
    env.reset(options={"start": 0.05})
    terminated, reward = False, 0.0
    while not terminated:
        _, reward, terminated, truncated, info = env.step(np.ones(1, np.float32))
        assert not truncated
    assert info["outcome"] == "off road"
    assert reward == pytest.approx(-10, abs=1)


def test_finishing_the_laps_terminates_without_a_penalty() -> None:
    env = DrivingEnv("narrow", laps=0)
    env.reset(options={"start": 0.05})
    _, reward, terminated, truncated, info = env.step(np.zeros(1, np.float32))
    assert (terminated, truncated, info["outcome"]) == (True, False, "finished")
    assert float(reward) > 0


def test_the_rendered_picture_is_the_view_above_the_map() -> None:
    env = DrivingEnv("narrow", render_mode="rgb_array")
    picture, _ = env.reset(seed=0)
    rendered = env.render()
    assert rendered is not None
    assert rendered.shape == (400, 320, 3)
    assert (rendered[:160] == picture).all()


def test_wrong_use_is_told() -> None:
    with pytest.raises(ValueError, match="render_mode is 'human': it is None or 'rgb_array'"):
        DrivingEnv(render_mode="human")
    with pytest.raises(ValueError, match="unknown track 'x'"):
        DrivingEnv("x")
    env = DrivingEnv("narrow")
    with pytest.raises(RuntimeError, match=r"reset\(\) comes before"):
        env.step(np.zeros(1, np.float32))
    with pytest.raises(ValueError, match=r"unknown options \['place'\]"):
        env.reset(options={"place": 3})
