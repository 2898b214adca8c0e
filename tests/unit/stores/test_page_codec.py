"""The compact form of pages is small and lossless, and damaged data is rejected."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.dates import w3c
from sitemap_middleware.evidence.observation_merge import merge_if_changed
from sitemap_middleware.evidence.observations import HtmlFacts, Observation
from sitemap_middleware.models import Page, UnconfirmedAnswer
from sitemap_middleware.stores.compact_page_list import CompactPageList
from sitemap_middleware.stores.page_codec import MEDIA_TYPES, packed_page, unpack_block, unpack_page
from sitemap_middleware.stores.redis.packed_pages_and_segments import parse_pages
from sitemap_middleware.value_history import MAX_RUNS, Run

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
HISTORIES = st.lists(st.builds(Run, NUMBERS, NUMBERS, NUMBERS), max_size=MAX_RUNS).map(tuple)
PAGES = st.builds(
    Page,
    path=TEXTS,
    route=TEXTS,
    first_seen=NUMBERS,
    last_seen=NUMBERS,
    status=st.integers(-(2**15), 2**15 - 1),
    last_seen_fraction=st.integers(0, 255),
    read_fraction=st.integers(0, 255),
    media_type=st.sampled_from(MEDIA_TYPES) | TEXTS,
    noindex=st.booleans(),
    private=st.booleans(),
    obstacle=TEXTS,
    expires_at=st.none() | NUMBERS,
    canonical=st.none() | TEXTS,
    last_modified=st.none() | NUMBERS,
    last_modified_history=HISTORIES,
    read_at=NUMBERS,
    html_noindex=st.booleans(),
    html_canonical=st.none() | TEXTS,
    stated_date=st.none() | st.dates().map(w3c) | st.datetimes().map(w3c),
    html_obstacle=TEXTS,
    html_expires_at=st.none() | NUMBERS,
    unread_reason=TEXTS,
    without_path=st.just(0),
    content_history=HISTORIES,
    stated_date_history=HISTORIES,
    learned=st.booleans(),
    is_unconfirmed=st.booleans(),
    unconfirmed_answers=st.lists(st.builds(UnconfirmedAnswer, at=NUMBERS, status=NUMBERS)).map(tuple),
)

MARKED = st.builds(
    lambda page, read_at, mark: page._replace(read_at=read_at, without_path=mark),
    PAGES,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**31 - 1),
)

PLAIN = merge_if_changed(
    None, Observation("/a", "/<a>", 1_700_000_000, 200, "text/html", html=HtmlFacts(-2), learned=True)
)
FULL = PLAIN._replace(
    media_type="text/x",
    noindex=True,
    private=True,
    canonical="https://example.com/é",
    last_modified=1_600_000_000,
    last_modified_history=(Run(1_600_000_000, 1_700_000_000, 1_700_000_000),),
    html_noindex=True,
    html_canonical="",
    stated_date="2024-05-01",
    stated_date_history=(Run(1_714_521_600, 1_700_000_000, 1_700_000_000),),
    obstacle="is",
    expires_at=7,
    html_obstacle="was",
    html_expires_at=-1,
    unread_reason="is",
    is_unconfirmed=True,
    unconfirmed_answers=(UnconfirmedAnswer(1_700_000_000, 302), UnconfirmedAnswer(1_700_000_060, 403)),
)
AS_EVER = {
    "01 0800 00 c8000000 00 01 00 00f1536500000000 00f1536500000000 0000000000000000 00f1536500000000"
    " feffffffffffffff 00f1536500000000 00f1536500000000": PLAIN,
    "01 ffff 00 c8000000 01 01 01 00f1536500000000 00f1536500000000 00105e5f00000000 00f1536500000000"
    " 00105e5f00000000 00f1536500000000 00f1536500000000 feffffffffffffff 00f1536500000000 00f1536500000000"
    " 0086316600000000 00f1536500000000 00f1536500000000"
    " 06000000 746578742f78 16000000 68747470733a2f2f6578616d706c652e636f6d2fc3a9"
    " 00000000 0a000000 323032342d30352d3031"
    " 02000000 6973 01000000 37 03000000 776173 02000000 2d31 02000000 6973"
    " 2a000000 313730303030303030302e3330322e372c313730303030303036302e3430332e34323934393637323935": FULL,
    "02 0800 00 c8000000 00 01 00 00f1536500000000 00f1536500000000 0000000000000000 00f1536504030201"
    " feffffffffffffff 00f1536500000000 00f1536500000000": PLAIN._replace(without_path=0x0102_0304),
    "02 0800 00 c8000000 00 01 00 00f1536500000000 00f1536500000000 0000000000000000 00f15365ffffff7f"
    " feffffffffffffff 00f1536500000000 00f1536500000000": PLAIN._replace(without_path=2**31 - 1),
}


def pack_page(page: Page) -> bytes:
    return packed_page(page).data


@given(PAGES | MARKED)
def test_a_page_survives_its_packing(page: Page) -> None:
    unpacked = unpack_page(page.path, page.route, pack_page(page))
    assert unpacked == page
    assert [type(value) for value in unpacked] == [type(value) for value in page]
    assert all(
        isinstance(run, Run)
        for run in (*unpacked.last_modified_history, *unpacked.content_history, *unpacked.stated_date_history)
    )


@pytest.mark.parametrize("read_at", [-1, 2**32])
def test_a_page_read_beyond_four_bytes_of_seconds_has_no_mark(read_at: int) -> None:
    page = PLAIN._replace(read_at=read_at)
    assert pack_page(page._replace(without_path=7)) == pack_page(page)


def test_a_plain_page_is_small() -> None:
    assert len(pack_page(PLAIN)) <= 90


@given(st.binary(max_size=120) | st.binary(max_size=120).map(lambda raw: b"\x01" + raw))
def test_foreign_bytes_make_a_page_or_are_refused(data: bytes) -> None:
    try:
        page = unpack_page("/", "/", data)
    except ValueError:
        return
    assert unpack_page("/", "/", pack_page(page)) == page


@given(PAGES | MARKED, st.data())
def test_damaged_bytes_give_a_page_or_are_refused(page: Page, data: st.DataObject) -> None:
    raw = pack_page(page)
    cut = data.draw(st.integers(0, len(raw) - 1))
    for short in (raw[:cut], raw + b"\0" * (cut + 1)):
        with pytest.raises(
            ValueError, match=r"^(the stored page '.*' cannot be read|the texts of a stored page|'utf-8')"
        ):
            unpack_page("/", "/", short)
    spoilt = raw[:cut] + bytes([raw[cut] ^ data.draw(st.integers(1, 255))]) + raw[cut + 1 :]
    try:
        other = unpack_page(page.path, page.route, spoilt)
    except ValueError:
        return
    assert unpack_page(page.path, page.route, pack_page(other)) == other


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\4" + pack_page(PLAIN)[1:],
        pack_page(PLAIN)[:3] + b"\x7f" + pack_page(PLAIN)[4:],
        pack_page(PLAIN) + b"\0",
    ],
)
def test_unknown_format_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="the stored page '/a' cannot be read"):
        unpack_page("/a", "/<a>", data)


@pytest.mark.parametrize(
    "page",
    [
        PLAIN._replace(first_seen=2**63),
        PLAIN._replace(last_modified=2**70),
        PLAIN._replace(status=2**15),
        PLAIN._replace(last_seen_fraction=256),
        PLAIN._replace(without_path=2**31),
        PLAIN._replace(last_modified_history=(Run(1, 2, 2**63),)),
        PLAIN._replace(content_history=PLAIN.content_history * 256),
    ],
)
def test_what_has_no_room_is_refused(page: Page) -> None:
    with pytest.raises(ValueError, match="page '/a' cannot be stored"):
        pack_page(page)


@pytest.mark.parametrize("name", ["media_type", "obstacle", "canonical", "unread_reason"])
def test_half_a_surrogate_pair_is_replaced_and_fails_no_batch(name: str) -> None:
    damaged = PLAIN._replace(**{name: "x\udc80"})
    assert unpack_page(damaged.path, damaged.route, pack_page(damaged)) == PLAIN._replace(**{name: "x?"})


@pytest.mark.parametrize("data", [bytes(24), bytes(100), b"\x01" + bytes(40), b"\xff" * 40, bytes(20) + b"\xff" * 20])
def test_rows_that_are_not_as_long_as_they_say_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="the length of a page is damaged"):
        list(islice(parse_pages(data), 10))


@pytest.mark.once
@given(st.lists(PAGES, max_size=5))
def test_packed_pages_keep_their_order_and_content(pages: list[Page]) -> None:
    sample = CompactPageList()
    sample.extend((page.path, page.route, packed_page(page).data) for page in pages)
    for same in (sample, CompactPageList(bytes(sample.data))):
        assert list(same) == pages
        assert list(same.paths()) == [page.path for page in pages]
        assert len(same) == len(pages)


def rows_of(pages: list[Page]) -> list[tuple[str, str, bytes]]:
    return [(page.path, page.route, packed_page(page).data) for page in pages]


@pytest.mark.parametrize("stated", [None, "2024-05-01"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda row: (*row[:2], row[2][:-1]),
        lambda row: (*row[:2], row[2][:5]),
        lambda row: (*row[:2], b""),
        lambda row: (*row[:2], b"\x09" + row[2][1:]),
        lambda row: (*row[:2], row[2][:3] + b"\xff" + row[2][4:]),
        lambda row: (*row[:2], None),
        lambda row: (*row[:2], "text"),
        lambda row: (None, *row[1:]),
        lambda row: (b"/2", *row[1:]),
        lambda row: (row[0], None, row[2]),
        lambda row: (row[0], [], row[2]),
    ],
)
@pytest.mark.parametrize("number", [0, 2])
def test_a_block_has_no_page_that_cannot_be_read(spoil: Callable[[Any], Any], number: int, stated: str | None) -> None:
    rows = rows_of([PLAIN._replace(path=f"/{place}", stated_date=stated) for place in range(5)])
    unpack_block(rows)
    rows[number] = spoil(rows[number])
    with pytest.raises(ValueError, match=r"the stored page .* cannot be read|wrong lengths"):
        unpack_block(rows)


@pytest.mark.parametrize("count", [1, 5], ids=["alone", "in columns"])
@pytest.mark.parametrize(
    "damaged",
    [
        *(
            "2024-13-01",
            "2024-05-00",
            "0000-05-01",
            "2024-W01-1",
            "20240501T1",
            "2024/05/01",
            "2024-05-\u0661",
            "<b>bold</b",
        ),
        *("2024-05-01T24:60:00Z", "2024-05-01 10:00:00Z", "2024-05-01T10:00:00+", "\0" * 10, "x" * 20),
    ],
    ids=ascii,
)
def test_a_stated_date_that_is_none_is_refused(damaged: str, count: int) -> None:
    good = "2024-05-01T10:00:00Z"[: len(damaged.encode())]
    rows = rows_of([PLAIN._replace(path=f"/{place}", stated_date=good) for place in range(count)])
    unpack_block(rows)
    path, route, data = rows[-1]
    rows[-1] = path, route, data.replace(good.encode(), damaged.encode())
    with pytest.raises(ValueError, match=r"not all are dates|must be in|out of range"):
        unpack_block(rows)


def test_a_date_whose_length_is_damaged_is_refused() -> None:
    rows = rows_of([PLAIN._replace(path=f"/{place}", stated_date="2024-05-01") for place in range(5)])
    path, route, data = rows[2]
    rows[2] = path, route, data[:-14] + b"\x09" + data[-13:]
    with pytest.raises(ValueError, match="wrong lengths"):
        unpack_block(rows)


@pytest.mark.parametrize(
    "spoil", [lambda raw: raw[:-1], lambda raw: raw[:8], lambda raw: raw + b"\1", lambda raw: raw * 2 + raw[:20]]
)
def test_invalid_packed_pages_are_refused(spoil: Callable[[bytes], bytes]) -> None:
    sample = CompactPageList()
    sample.extend([("/a", "/<a>", pack_page(PLAIN))])
    assert list(CompactPageList(bytes(sample.data))) == [PLAIN]
    with pytest.raises(ValueError, match=r"cannot be read|are incomplete"):
        CompactPageList(spoil(bytes(sample.data)))


def test_a_sample_takes_no_page_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="the stored page '/b' cannot be read"):
        CompactPageList().extend([("/a", "/<a>", pack_page(PLAIN)), ("/b", "/<a>", b"not a page")])
