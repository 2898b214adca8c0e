from __future__ import annotations

import os

from sitemap_middleware.crawlers.counted_visits import OTHER_PATHS, CrawlerVisit, VisitCounter

VISIT = CrawlerVisit("/a", "Googlebot", True, 200, first=1000, last=1000, count=1)


def test_visits_are_counted_until_they_are_taken() -> None:
    counter = VisitCounter()
    counter.add([VISIT, VISIT._replace(first=1500, last=1500)])
    counter.add([VISIT._replace(status=404)])
    assert len(counter) == 2
    assert counter.take() == [VISIT._replace(last=1500, count=2), VISIT._replace(status=404)]
    assert counter.take() == []


def test_what_is_put_back_adds_up_with_what_was_counted_meanwhile() -> None:
    counter = VisitCounter()
    counter.add([VISIT])
    taken = counter.take()
    counter.add([VISIT._replace(first=2000, last=2000)])
    counter.add(taken)
    assert counter.take() == [VISIT._replace(last=2000, count=2)]


def test_a_full_counter_counts_new_paths_together() -> None:
    counter = VisitCounter(max_rows=2)
    counter.add(VISIT._replace(path=f"/{number}") for number in range(100))
    assert counter.take() == [
        VISIT._replace(path="/0"),
        VISIT._replace(path="/1"),
        VISIT._replace(path=OTHER_PATHS, count=98),
    ]


def test_a_forked_child_does_not_count_the_visits_of_its_parent_again() -> None:
    counter = VisitCounter()
    counter.add([VISIT])
    child = os.fork()
    if not child:
        os._exit(len(counter))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert counter.take() == [VISIT]


def test_identities_are_counted_apart() -> None:
    counter = VisitCounter()
    visits = [VISIT, VISIT._replace(verified=False), VISIT._replace(verified=False, fake=True)]
    counter.add(visits)
    assert counter.take() == visits
