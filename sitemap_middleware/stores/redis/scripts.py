"""The Lua scripts of the Redis store. Redis executes each atomically.

All pages of a site are fields of one hash, beside what describes them. So Redis has all of it or, if it was flushed or
evicted the key, nothing. The fields:

    version             microseconds since 1970 by Redis's clock: never repeats, even if Redis loses its data
    run_id              Redis's `run_id` when the version was written; another one means that Redis was restarted
    lost_versions       two versions, around the last restart: some between them may have been lost
    turn                which worker may merge next, and until when, if several have tried at the same time
    cursor              a `PlacementCursor`, and the number of slots given to pages that were not learned
    slash_variants      1 if some paths may differ by a trailing slash only
    learned             number of learned pages
    route:<route>       number of learned pages of a route
    block:<number>      4 bytes document, 4 bytes number of pages, 8 bytes version of the last change
    segment:<number>    the path hashes in up to 1,000 slots, in order; zeros for an empty slot
    p<path hash>        a page (`packed_pages_and_segments`)

Redis refuses the first write of a script if it is out of memory, and none after that. So each script first executes a
command that can be refused, and writes everything or nothing. KEYS[1] is the hash, ARGV are the arguments.
"""

from __future__ import annotations

from hashlib import sha1
from typing import Final

PATH_HASH_BYTES: Final = 12
"""Leading bytes of the SHA-1 of a path, which Redis's Lua can compute as well."""

MAX_COMMAND_VALUES: Final = 1000
"""Values passed to one command in a script. Lua's stack takes about 8,000."""


class Script:
    """A script, and the SHA-1 by which EVALSHA calls it."""

    def __init__(self, *parts: str) -> None:
        constants = f"local HASH_BYTES, MAX_VALUES = {PATH_HASH_BYTES}, {MAX_COMMAND_VALUES}"
        self.text: str = "\n".join(("local key, call = KEYS[1], redis.call", constants, *parts))
        self.sha: str = sha1(self.text.encode(), usedforsecurity=False).hexdigest()


_VERSION_AND_BLOCKS: Final = """
-- Write the next version, and which versions may have been lost if Redis was restarted since the last one.
local function next_version()
    local last, last_run_id = unpack(call('HMGET', key, 'version', 'run_id'))
    local time = call('TIME')
    local version = time[1] * 1000000 + time[2]
    local last_number = tonumber(last or '')
    if last_number and version <= last_number then version = last_number + 1 end
    local info = redis.pcall('INFO', 'server') -- the account may not be allowed to
    local run_id = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
    local text = string.format('%.0f', version)
    call('HSET', key, 'version', text, 'run_id', run_id)
    if last_run_id and last_run_id ~= run_id and last_number then
        call('HSET', key, 'lost_versions', last .. ' ' .. text)
    end
    return version
end

-- Record that a block changed. `document` is 0 unless the block is new; `added` pages may be negative.
local function change_block(number, document, added, version)
    local block = call('HGET', key, 'block:' .. number)
    document = tonumber(document)
    if block and #block ~= 16 or not block and document == 0 and tonumber(number) ~= 0 then
        error('Script: a block is damaged')
    end
    local pages = 0
    if block then document, pages = struct.unpack('<I4I4', block) end
    call('HSET', key, 'block:' .. number, struct.pack('<I4I4I8', document, pages + added, version))
end
"""

_READ_ROWS: Final = """
-- Call `act` for each row of a list in ARGV: the number of rows, then so many values for each of them.
local function for_each_row(values, act)
    local rows = tonumber(ARGV[argument])
    argument = argument + 1
    for _ = 1, rows do
        act(unpack(ARGV, argument, argument + values - 1))
        argument = argument + values
    end
end
"""

_CHECK_TURN: Final = """
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local turn_end, turn_owner = string.match(call('HGET', key, 'turn') or '', '^(%d+) (.*)$')
if turn_end and tonumber(turn_end) > now and turn_owner ~= ARGV[1] then return 0 end
"""

_READ_SEGMENT: Final = """
local EMPTY_SLOT = string.rep('\\0', HASH_BYTES)
-- The slots of a segment as one string; and for each page its field, its offset in that string, and its value.
local function read_segment(number)
    local slots = call('HGET', key, 'segment:' .. number) or ''
    local fields, offsets = {}, {}
    for offset = 1, #slots, HASH_BYTES do
        local hash = string.sub(slots, offset, offset + HASH_BYTES - 1)
        if hash ~= EMPTY_SLOT then
            fields[#fields + 1] = 'p' .. hash
            offsets[#offsets + 1] = offset
        end
    end
    return slots, fields, offsets, #fields > 0 and call('HMGET', key, unpack(fields)) or {}
end
"""

TIME_SCRIPT: Final = Script("return call('TIME')")
"""The clock of the server that has the key: cluster nodes differ.

Returns: POSIX seconds, and microseconds.
"""

TURN_SCRIPT: Final = Script(
    _CHECK_TURN,
    "call('HSET', key, 'turn', string.format('%.0f %s', now + ARGV[2], ARGV[1])) return 1",
)
"""Take the turn: until it ends, or its owner has merged, MERGE_SCRIPT refuses all other workers.

Arguments: the owner, the milliseconds that the turn lasts at most (0 gives it up).
Returns: 1, or 0 if another worker has the turn.
"""

MERGE_SCRIPT: Final = Script(
    _CHECK_TURN,
    _VERSION_AND_BLOCKS,
    """
if (call('HGET', key, 'version') or '') ~= ARGV[2] then return 0 end
local version, argument = next_version(), 6
call('HSET', key, 'cursor', ARGV[3], 'slash_variants', ARGV[4])
call('HINCRBY', key, 'learned', ARGV[5])
if turn_end then call('HDEL', key, 'turn') end
""",
    _READ_ROWS,
    """
for_each_row(2, function(route, added) call('HINCRBY', key, 'route:' .. route, added) end)
for_each_row(3, function(number, document, added) change_block(number, document, added, version) end)
for_each_row(3, function(number, offset, hashes)
    local slots = call('HGET', key, 'segment:' .. number) or ''
    offset = tonumber(offset)
    slots = slots .. string.rep('\\0', offset - #slots)
    slots = string.sub(slots, 1, offset) .. hashes .. string.sub(slots, offset + #hashes + 1)
    call('HSET', key, 'segment:' .. number, slots)
end)
local hashes, pages, page_offset = ARGV[argument], ARGV[argument + 1], 1
for first = 1, #hashes, HASH_BYTES * MAX_VALUES do
    local fields = {}
    for offset = first, math.min(#hashes, first + HASH_BYTES * MAX_VALUES - 1), HASH_BYTES do
        local size = struct.unpack('<I4', pages, page_offset)
        table.insert(fields, 'p' .. string.sub(hashes, offset, offset + HASH_BYTES - 1))
        table.insert(fields, string.sub(pages, page_offset, page_offset + size - 1))
        page_offset = page_offset + size
    end
    call('HSET', key, unpack(fields))
end
return 1
""",
)
"""Write the result of a merge, unless the site has changed since it was read or another worker has the turn.

Arguments: the owner of the turn; the version that was read; the new cursor; 1 or 0 for slash variants; by how many
pages `learned` grows; rows of (route, added pages); rows of (block, document, added pages); rows of (segment, byte
offset, path hashes); the path hashes of all changed pages, joined; these pages, joined.
Returns: 1 if it was written, else 0.
"""

REPAIR_SCRIPT: Final = Script(
    _VERSION_AND_BLOCKS,
    """
if (call('HGET', key, 'version') or '') ~= ARGV[1] then return 0 end
local version, argument = next_version(), 2
""",
    _READ_ROWS,
    """
for_each_row(1, function(field) call('HDEL', key, field) end)
for_each_row(2, function(field, value) call('HSET', key, field, value) end)
for_each_row(3, function(number, document, pages) change_block(number, document, pages, version) end)
return 1
""",
)
"""Write the result of a repair, unless the site has changed since it was read.

Arguments: the version that was read; rows of (field to delete); rows of (field, value); rows of (block, document,
pages).
Returns: 1 if it was written, else 0.
"""

SEGMENT_SCRIPT: Final = Script(
    _READ_SEGMENT,
    """
local _, _, _, pages = read_segment(ARGV[1])
return {table.concat(pages), call('HGET', key, 'block:' .. ARGV[1]) or ''}
""",
)
"""Read the pages of a segment.

Arguments: the segment.
Returns: its pages in order, joined; the value of the block with the same number, or ''.
"""

FIND_SCRIPT: Final = Script(
    """
local hashes, found = ARGV[1], {}
for first = 1, #hashes, HASH_BYTES * MAX_VALUES do
    local fields = {}
    for offset = first, math.min(#hashes, first + HASH_BYTES * MAX_VALUES - 1), HASH_BYTES do
        fields[#fields + 1] = 'p' .. string.sub(hashes, offset, offset + HASH_BYTES - 1)
    end
    for _, page in ipairs(call('HMGET', key, unpack(fields))) do
        if page then found[#found + 1] = page end
    end
end
local values = {table.concat(found)}
for argument = 2, #ARGV do values[argument] = call('HGET', key, ARGV[argument]) end
return values
""",
)
"""Read pages by their path hashes, and other fields at the same moment.

Arguments: the path hashes, joined; any number of fields.
Returns: the pages that exist, joined; the value of each field.
"""

FORGET_SCRIPT: Final = Script(
    _VERSION_AND_BLOCKS,
    _READ_SEGMENT,
    """
local unseen_since, unlisted_since = tonumber(ARGV[2]), tonumber(ARGV[3])
local slots, fields, offsets, pages = read_segment(ARGV[1])
local deleted, paths, routes = {}, {}, {}
for number, page in ipairs(pages) do
    local listable, last_seen, _, _, path_size, route_size, text = struct.unpack('<Bi8I4I2I2I2', page, 5)
    if last_seen < unseen_since or (last_seen < unlisted_since and listable == 0) then
        local path = string.sub(page, text, text + path_size - 1)
        local route = path
        if route_size > 0 then route = string.sub(page, text + path_size, text + path_size + route_size - 1) end
        deleted[#deleted + 1] = fields[number]
        paths[#paths + 1] = path
        routes[route] = (routes[route] or 0) + 1
        local offset = offsets[number]
        slots = string.sub(slots, 1, offset - 1) .. EMPTY_SLOT .. string.sub(slots, offset + HASH_BYTES)
    end
end
if #deleted == 0 then return 0 end
local version = next_version()
call('HSET', key, 'segment:' .. ARGV[1], slots)
call('HDEL', key, unpack(deleted))
call('HINCRBY', key, 'learned', -#deleted)
for route, count in pairs(routes) do call('HINCRBY', key, 'route:' .. route, -count) end
change_block(ARGV[1], 0, -#deleted, version)
if call('HGET', key, 'slash_variants') == '1' then
    -- Pages whose paths differ from deleted ones by a trailing slash only may be listed now: their blocks change, too.
    local changed = {}
    for _, path in ipairs(paths) do
        local variant = string.sub(path, -1) == '/' and string.sub(path, 1, -2) or path .. '/'
        local digits = string.sub(redis.sha1hex(variant), 1, 2 * HASH_BYTES)
        local hash = string.gsub(digits, '..', function(pair) return string.char(tonumber(pair, 16)) end)
        local page = call('HGET', key, 'p' .. hash)
        local segment = page and struct.unpack('<I4', page, 14)
        if segment then changed[segment < 2147483648 and segment or 0] = true end
    end
    for number in pairs(changed) do change_block(number, 0, 0, version) end
end
return #deleted
""",
)
"""Delete the pages of a block that were last seen before a moment, or that are not listable and were last seen before
another one.

Arguments: the block; the first moment and the second one, in POSIX seconds.
Returns: how many pages were deleted.
"""

BLOCKS_SCRIPT: Final = Script(
    """
local since = tonumber(ARGV[1])
local cursor, lost_versions = unpack(call('HMGET', key, 'cursor', 'lost_versions'))
if not cursor then return {} end
local lost_from, lost_to = string.match(lost_versions or '', '^(%d+) (%d+)$')
if lost_from and since > tonumber(lost_from) and since < tonumber(lost_to) then since = 0 end
local last = tonumber(string.match(cursor, '^%d+'))
local changed = {}
for first = 0, last, MAX_VALUES do
    local fields = {}
    for number = first, math.min(last, first + MAX_VALUES - 1) do fields[#fields + 1] = 'block:' .. number end
    for index, block in ipairs(call('HMGET', key, unpack(fields))) do
        if block and select(3, struct.unpack('<I4I4I8', block)) > since then
            table.insert(changed, first + index - 1)
            table.insert(changed, block)
        end
    end
end
return changed
""",
)
"""Read the blocks that changed after a version; all of them if that version was lost.

Arguments: the version.
Returns: the number and the value of each block, in turn.
"""

SERVED_SINCE_SCRIPT: Final = Script(
    """
local document = call('HGET', key, ARGV[1])
local since = document and string.match(document, '^(%d+) ')
if since and string.sub(document, #since + 2) == ARGV[2] then return since end
local lead, now = tonumber(since or 0) - ARGV[3], ARGV[3]
if lead >= 0 and lead <= tonumber(ARGV[4]) then now = string.format('%.0f', since + 1) end
call('HSET', key, ARGV[1], now .. ' ' .. ARGV[2])
return now
""",
)
"""Record when a document was first served with its current ETag.

Arguments: the document's name, its ETag, the current POSIX second, `MAX_CLOCK_LEAD_SECONDS`.
Returns: the POSIX second when this ETag was first served, as `Store.served_since` defines it.
"""

SAVE_SCRIPT: Final = Script(
    """
local saved = 2 * tonumber(ARGV[1])
for argument = 2, saved + 1, 2 do call('HSET', key, ARGV[argument], ARGV[argument + 1]) end
for argument = saved + 2, #ARGV do call('HDEL', key, ARGV[argument]) end
""",
)
"""Save some records and delete others.

Arguments: the number of records to save; the name and the value of each; the names of records to delete.
"""

LEASE_SCRIPT: Final = Script(
    """
local lease = call('HGET', key, ARGV[1])
local expires_at = lease and string.match(lease, '^(%d+) ')
local ends = tonumber(expires_at or 0)
local now, seconds, max_seconds = ARGV[3], ARGV[4], ARGV[5]
local is_owner = lease and string.sub(lease, #(expires_at or '') + 2) == ARGV[2]
if ends > tonumber(now) and ends <= now + max_seconds and not is_owner then return 0 end
call('HSET', key, ARGV[1], string.format('%.0f', now + seconds) .. ' ' .. ARGV[2])
return 1
""",
)
"""Acquire or renew a lease.

Arguments: the lease's name, the owner, the current POSIX second, the seconds that it is to last, the seconds that any
lease can last (one that ends later was taken by a clock that is ahead, and is ignored).
Returns: 1, or 0 if another owner has the lease.
"""
