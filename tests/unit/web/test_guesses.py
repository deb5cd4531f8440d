"""Wrong keys make their own address wait, and no other."""

from web.api.auth import FREE_GUESSES, LONGEST_PAUSE, MAX_ADDRESSES, Guesses


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_each_guess_after_ten_waits_twice_as_long() -> None:
    clock = Clock()
    guesses = Guesses(clock)
    for _ in range(FREE_GUESSES):
        assert guesses.seconds_to_wait("one") == 0
        guesses.add("one")
    pauses = []
    for _ in range(10):
        pauses.append(guesses.seconds_to_wait("one"))
        assert guesses.seconds_to_wait("other") == 0
        clock.seconds += pauses[-1]
        assert guesses.seconds_to_wait("one") == 0
        guesses.add("one")
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, LONGEST_PAUSE]
    guesses.forget("one")  # the right key was given
    assert guesses.seconds_to_wait("one") == 0


def test_old_guesses_are_forgotten() -> None:
    clock = Clock()
    guesses = Guesses(clock)
    for _ in range(FREE_GUESSES + 5):
        guesses.add("one")
    clock.seconds += 3_601
    guesses.add("one")
    assert guesses.seconds_to_wait("one") == 0


def test_memory_is_bounded() -> None:
    guesses = Guesses(Clock())
    for i in range(MAX_ADDRESSES + 100):
        guesses.add(str(i))
    assert len(guesses.wrong) == MAX_ADDRESSES and "0" not in guesses.wrong
