"""What Redis does by itself, in one step: the scripts of the Redis store.

All pages of a site, and all that is known of these, are the fields of one hash,
so that there is either all of it or, where Redis was emptied or had to make
room, nothing. The fields:

    v            the version: microseconds since 1970 by Redis's clock, so that none comes again, whatever was lost
    u, g         Redis's own name for its run; between which versions some were lost when that changed last
    w            who, and until when, has the turn to fold, where several wanted to at one time
    f            what new pages go into: a `PlacementCursor`, and how many places were given to pages that are not learned
    t            whether there are pages spelled as others but for a slash at the end
    n, c<route>  how many pages are learned, of all routes and of each
    b<block>     4 bytes its document, 4 its number of pages, 8 the version when one of them last changed
    o<segment>   the names of the pages of up to a thousand places, in order; zeros where there is none (any more)
    p<name>      a page (`stores/redis`)

A script begins with a command that Redis refuses where it is out of memory; one
that has begun to write is not refused any more. So each writes all or nothing.
"""  # noqa: E501

from __future__ import annotations

from hashlib import sha1
from typing import Final

NAME_BYTES: Final = 12
"""Bytes of a page's name, which are those that the SHA-1 of its path begins with: that is what Redis's Lua has."""

MAX_COMMAND_VALUES: Final = 1000
"""Values of one command in a script: Lua takes some 8,000 at most."""


class Script:
    """A script, and the name under which Redis remembers it."""

    def __init__(self, *parts: str) -> None:
        self.text = "".join(parts).replace("NAME", str(NAME_BYTES)).replace("AT_ONCE", str(MAX_COMMAND_VALUES))
        self.digest = sha1(self.text.encode(), usedforsecurity=False).hexdigest()


_CALL_LUA: Final = "local key, call = KEYS[1], redis.call\n"

_BEGIN_LUA: Final = """
local function begin()
    local before, run = unpack(call('HMGET', key, 'v', 'u'))
    local time = call('TIME')
    local version = time[1] * 1000000 + time[2]
    local old = tonumber(before or '')
    if old and version <= old then version = old + 1 end
    local info = redis.pcall('INFO', 'server')
    local now = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
    local text = string.format('%.0f', version)
    call('HSET', key, 'v', text, 'u', now)
    if run and run ~= now and old then call('HSET', key, 'g', before .. ' ' .. text) end
    return version
end
local function note(block, document, pages, version)
    local known = call('HGET', key, 'b' .. block)
    if known and #known ~= 16 or not known and document == 0 and tonumber(block) ~= 0 then
        error('Script: what is kept of a block is damaged')
    end
    if known then
        local before
        document, before = struct.unpack('<I4I4', known)
        pages = before + pages
    end
    call('HSET', key, 'b' .. block, struct.pack('<I4I4I8', document, pages, version))
end
"""

_TURN_LUA: Final = """
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local till, owner = string.match(call('HGET', key, 'w') or '', '^(%d+) (.*)$')
if till and tonumber(till) > now and owner ~= ARGV[1] then return 0 end
"""

TIME_SCRIPT: Final = Script(_CALL_LUA, "return call('TIME')")
"""The time of the server that keeps a key: seconds, and microseconds."""

TURN_SCRIPT: Final = Script(
    _CALL_LUA,
    _TURN_LUA,
    "call('HSET', key, 'w', string.format('%.0f %s', now + ARGV[2], ARGV[1])) return 1",
)
"""Have others wait with their folds until one's own is done, or so many milliseconds passed; whether that may be."""

MERGE_SCRIPT: Final = Script(
    _CALL_LUA,
    _TURN_LUA,
    _BEGIN_LUA,
    """
if (call('HGET', key, 'v') or '') ~= ARGV[2] then return 0 end
local version = begin()
call('HSET', key, 'f', ARGV[3], 't', ARGV[4])
call('HINCRBY', key, 'n', ARGV[5])
if till then call('HDEL', key, 'w') end
local at = 6
local function each(values, act)
    local count = tonumber(ARGV[at])
    at = at + 1
    for _ = 1, count do
        act(unpack(ARGV, at, at + values - 1))
        at = at + values
    end
end
each(2, function(route, by) call('HINCRBY', key, 'c' .. route, by) end)
each(3, function(block, document, pages) note(block, tonumber(document), tonumber(pages), version) end)
each(3, function(segment, from, names)
    local order = call('HGET', key, 'o' .. segment) or ''
    from = tonumber(from)
    order = order .. string.rep('\\0', from - #order)
    call('HSET', key, 'o' .. segment, string.sub(order, 1, from) .. names .. string.sub(order, from + #names + 1))
end)
local names, pages, from = ARGV[at], ARGV[at + 1], 1
for first = 1, #names, NAME * AT_ONCE do
    local fields = {}
    for at = first, math.min(#names, first + NAME * AT_ONCE - 1), NAME do
        local size = struct.unpack('<I4', pages, from)
        fields[#fields + 1] = 'p' .. string.sub(names, at, at + NAME - 1)
        fields[#fields + 1] = string.sub(pages, from, from + size - 1)
        from = from + size
    end
    call('HSET', key, unpack(fields))
end
return 1
""",
)
"""Write what a fold has changed, if the version is the one that it was made of, and the turn nobody else's; whether."""

REPAIR_SCRIPT: Final = Script(
    _CALL_LUA,
    _BEGIN_LUA,
    """
if (call('HGET', key, 'v') or '') ~= ARGV[1] then return 0 end
local version = begin()
local at = 2
local function each(values, act)
    local count = tonumber(ARGV[at])
    at = at + 1
    for _ = 1, count do
        act(unpack(ARGV, at, at + values - 1))
        at = at + values
    end
end
each(1, function(field) call('HDEL', key, field) end)
each(2, function(field, value) call('HSET', key, field, value) end)
each(3, function(block, document, pages) note(block, tonumber(document), tonumber(pages), version) end)
return 1
""",
)
"""Drop fields, and write others and the blocks anew, if the version is still the one that was looked at; whether."""

_NAMES_LUA: Final = """
local order = call('HGET', key, 'o' .. ARGV[1]) or ''
local names, places, none = {}, {}, string.rep('\\0', NAME)
for at = 1, #order, NAME do
    local name = string.sub(order, at, at + NAME - 1)
    if name ~= none then
        names[#names + 1] = 'p' .. name
        places[#places + 1] = at
    end
end
if #names == 0 then return ARGV[2] and 0 or {'', call('HGET', key, 'b' .. ARGV[1]) or ''} end
local pages = call('HMGET', key, unpack(names))
"""

SEGMENT_SCRIPT: Final = Script(
    _CALL_LUA, _NAMES_LUA, "return {table.concat(pages), call('HGET', key, 'b' .. ARGV[1]) or ''}"
)
"""The pages of a segment, one after the other; and what is known of the block of that number."""

FIND_SCRIPT: Final = Script(
    _CALL_LUA,
    """
local names, found = ARGV[1], {}
for first = 1, #names, NAME * AT_ONCE do
    local fields = {}
    for at = first, math.min(#names, first + NAME * AT_ONCE - 1), NAME do
        fields[#fields + 1] = 'p' .. string.sub(names, at, at + NAME - 1)
    end
    for _, page in ipairs(call('HMGET', key, unpack(fields))) do
        if page then found[#found + 1] = page end
    end
end
local values = {table.concat(found)}
for at = 2, #ARGV do values[at] = call('HGET', key, ARGV[at]) end
return values
""",
)
"""The pages of some names, as many as there are, one after the other; and the values of some fields."""

FORGET_SCRIPT: Final = Script(
    _CALL_LUA,
    _BEGIN_LUA,
    _NAMES_LUA,
    """
local unseen, unlisted = tonumber(ARGV[2]), tonumber(ARGV[3])
local gone, paths, routes, count = {}, {}, {}, 0
for number, page in ipairs(pages) do
    local promising, seen, _, _, path, route, at = struct.unpack('<Bi8I4I2I2I2', page, 5)
    if seen < unseen or (seen < unlisted and promising == 0) then
        local text = string.sub(page, at, at + path - 1)
        paths[#paths + 1] = text
        if route > 0 then text = string.sub(page, at + path, at + path + route - 1) end
        routes[text] = (routes[text] or 0) + 1
        count = count + 1
        gone[count] = names[number]
        order = string.sub(order, 1, places[number] - 1) .. none .. string.sub(order, places[number] + NAME)
    end
end
if count > 0 then
    local version = begin()
    call('HSET', key, 'o' .. ARGV[1], order)
    call('HDEL', key, unpack(gone))
    call('HINCRBY', key, 'n', -count)
    for route, pages in pairs(routes) do call('HINCRBY', key, 'c' .. route, -pages) end
    note(ARGV[1], 0, -count, version)
    if call('HGET', key, 't') == '1' then
        local beside = {}
        for _, path in ipairs(paths) do
            local twin = string.sub(path, -1) == '/' and string.sub(path, 1, -2) or path .. '/'
            local digest = string.sub(redis.sha1hex(twin), 1, 2 * NAME)
            local name = string.gsub(digest, '..', function(two) return string.char(tonumber(two, 16)) end)
            local page = call('HGET', key, 'p' .. name)
            local segment = page and struct.unpack('<I4', page, 14)
            if segment then beside[segment < 2147483648 and segment or 0] = true end
        end
        for block in pairs(beside) do note(block, 0, 0, version) end
    end
end
return count
""",
)
"""Forget those pages of a block that were not seen since one moment, or are not promising, and since another.

The blocks of pages that are spelled as these but for a slash at the end have changed, too.
"""

BLOCKS_SCRIPT: Final = Script(
    _CALL_LUA,
    """
local since = tonumber(ARGV[1])
local filling, gap = unpack(call('HMGET', key, 'f', 'g'))
if not filling then return {} end
local from, to = string.match(gap or '', '^(%d+) (%d+)$')
if from and since > tonumber(from) and since < tonumber(to) then since = 0 end
local last = tonumber(string.match(filling, '^%d+'))
local found = {}
for first = 0, last, AT_ONCE do
    local fields = {}
    for block = first, math.min(last, first + AT_ONCE - 1) do fields[#fields + 1] = 'b' .. block end
    for number, known in ipairs(call('HMGET', key, unpack(fields))) do
        if known and select(3, struct.unpack('<I4I4I8', known)) > since then
            found[#found + 1] = first + number - 1
            found[#found + 1] = known
        end
    end
end
return found
""",
)
"""The blocks that changed after a version: their numbers, and what is known of each. After one that was lost, all."""

SERVED_SINCE_SCRIPT: Final = Script(
    _CALL_LUA,
    """
local known = call('HGET', key, ARGV[1])
local since = known and string.match(known, '^(%d+) ')
if since and string.sub(known, #since + 2) == ARGV[2] then return since end
call('HSET', key, ARGV[1], ARGV[3] .. ' ' .. ARGV[2])
return ARGV[3]
""",
)
"""Since when a document has been what it is."""

SAVE_SCRIPT: Final = Script(
    _CALL_LUA,
    """
local kept = 2 * tonumber(ARGV[1])
for at = 2, kept + 1, 2 do call('HSET', key, ARGV[at], ARGV[at + 1]) end
for at = kept + 2, #ARGV do call('HDEL', key, ARGV[at]) end
""",
)
"""Keep things, and drop others."""

LEASE_SCRIPT: Final = Script(
    _CALL_LUA,
    """
local known = call('HGET', key, ARGV[1])
local till = known and string.match(known, '^(%d+) ')
local ends = tonumber(till or 0)
if ends > tonumber(ARGV[3]) and ends <= ARGV[3] + ARGV[5] and string.sub(known, #till + 2) ~= ARGV[2] then return 0 end
call('HSET', key, ARGV[1], string.format('%.0f', ARGV[3] + ARGV[4]) .. ' ' .. ARGV[2])
return 1
""",
)
"""Whether an owner may have a lease."""
