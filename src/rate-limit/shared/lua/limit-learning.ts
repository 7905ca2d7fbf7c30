/**
 * Learns for the whole fleet from one response: src/rate-limit/limit-learning.ts in Lua, for
 * budget-script.ts, with the leases of all workers in place of one process's requests in flight. A
 * lease records how many responses had arrived when it was granted. The causal rule needs nothing
 * else, so no clock of a worker has to be trusted.
 */
export const learn = `
local COMPANY_WINDOWS = 10
-- After a time of which nothing is known: until the first answer of the window after.
local UNKNOWN_WINDOWS = 1.5
local MOST_RECENT = 128
local LONG_WINDOW = 10000
local SHORT = 500
local JITTER = 50
local LEAST_WAIT = 1000
local UNKNOWN_WINDOW = 60000
local SLOW_START = 2
local CEILING = 128

local function meet_company(m, now, windows)
  m.company = math.max(m.company, now + windows * (m.window or 0))
end

local function put(m, e, left)
  local mark = { left = left, at = m.answers, ms = e.at, counts = counted(m, e.at) }
  -- Of a window that is known it cannot be further away.
  if e.resetIn then mark.reset = e.at + math.min(e.resetIn, m.window or e.resetIn) end
  if e.date and m.window and m.window >= LONG_WINDOW then
    mark.beat = e.at + m.window - e.date % m.window
  end
  m.mark = mark
end

-- Without headers: what went through between two refusals is taken for the limit.
local function guess(m, now, refused)
  if m.told or m.mark then return end
  local over = m.window and now >= back_at(m, m.opened.ms)
  if refused and m.opened.own > 1 then
    m.limit = m.opened.own - 1
    m.window = now - m.opened.ms
  elseif over and m.limit then
    m.limit = m.limit + 1
  end
  if refused or over then m.opened = { ms = now, own = 1, short = false } end
end

local function grow(m)
  m.round = m.round + 1
  if not m.mark and m.round < m.pace then return end
  m.round = 0
  m.pace = math.min(CEILING, m.pace + 1)
end

-- The causal rule, one half: what came while this was under way may have counted after it.
local function latest(m, e, shown)
  local least = shown
  for _, one in ipairs(m.recent) do
    if one.at > e.answers then least = math.min(least, one.shown) end
  end
  m.recent[#m.recent + 1] = { at = m.answers, shown = shown }
  if #m.recent > MOST_RECENT then table.remove(m.recent, 1) end
  return least
end

-- Beyond what our own requests explain: a whole window at once, or units one after the other.
local function came_back(m, e, left, gain, due)
  if gain <= 0 or not m.limit or not m.window then return 'nothing' end
  if left <= units(m) - surely(m, e.at - e.trip, e.at) then return 'nothing' end
  if gain > (e.at - m.mark.ms) * m.limit / m.window + 1.5 then return 'window' end
  -- Nearly all may be a window that has turned; but before it could, what is reserved came back.
  local before = m.reserve > 0 and not due
  return (before or left < (units(m) - 1) * 0.9) and 'units' or 'nothing'
end

local function late(m, elapsed)
  if flying(m) > 0 or not m.limit or not m.window then return false end
  return elapsed > 1.5 * m.window / m.limit
end

-- Of the limit, what others have used of the window so far.
local function foreign_share(m)
  if not m.mark then return 0 end
  local used = units(m) - m.mark.left
  -- Of a window that slides, our own of the one before count still.
  local own = math.max(m.opened.own + (m.opened.before or 0), m.counts) + flying(m)
  -- One more or less is nobody: of a server that weighs the window before, it is rounding.
  return math.max(0, used - own - 1) / (m.limit or 1)
end

-- A window is over: of one that was seen from its beginning, what others used of it is known.
local function turn(m, e)
  m.foreign = (m.opened.before or 0) > 0 and 0 or foreign_share(m)
  m.opened = { ms = e.at, own = 1, short = m.opened.short, before = 0 }
end

local function believe_first(m, e, left)
  -- What is missing without us was used before anything was known: by us too, maybe.
  if left < units(m) - m.counts - flying(m) then meet_company(m, e.at, UNKNOWN_WINDOWS) end
  local before = math.max(0, units(m) - left - 1)
  m.opened = { ms = e.at, own = 1, short = false, before = before }
  put(m, e, left)
end

local function believe(m, e, left)
  local mark = m.mark
  if not mark then return believe_first(m, e, left) end
  local less = e.base and left < e.base - m.sent
  if less then meet_company(m, e.at, COMPANY_WINDOWS) end
  -- The causal rule, the other half: sent before the mark had come, it may only lower it.
  if e.answers < mark.at then
    if left < mark.left then put(m, e, left) end
    return
  end
  local due = e.at >= back_at(m, m.opened.ms)
  if due then m.opened.short = left + 1 < units(m) / 2 end
  if less and m.opened.short then m.trickle = true end
  -- Whether a window gives back what was sent a window before, as far as was seen: of half a limit
  -- it says so; a few units come back under every algorithm.
  if less then m.proven = false
  elseif due and e.base and e.base - m.sent >= units(m) / 2 then m.proven = true end
  local gain = left - (mark.left - 1)
  local found = came_back(m, e, left, gain, due)
  if found == 'units' then
    m.trickle = true
  elseif found == 'window' then
    m.proven = true
    m.trickle = false
    turn(m, e)
    m.opened.short = false
    m.pace = SLOW_START
  elseif due and gain > 0 then
    turn(m, e)
  elseif gain <= 0 and late(m, e.at - mark.ms) then
    m.trickle = false
    if not alone(m, e.at) then m.rigid = e.at + COMPANY_WINDOWS * (m.window or 0) end
  end
  put(m, e, left)
end

local function block(m, e, jitter)
  local blocked = m.blocked
  -- The rest of a burst that was refused already is the same refusal.
  local same = blocked and e.answers < blocked.at
  if not same then
    m.refusals = m.refusals + 1
    m.pace = math.max(1, math.floor(m.pace / 2))
  end
  m.trickle = false
  m.rigid = nil
  meet_company(m, e.at, COMPANY_WINDOWS)
  local asked = LEAST_WAIT
  if e.retryAfter and e.retryAfter > 0 then asked = e.retryAfter end
  local doubled = LEAST_WAIT * 2 ^ math.min(20, math.max(0, m.refusals - 1))
  local most = math.max(asked, m.window or UNKNOWN_WINDOW)
  local part = 0.02 * (m.window or 0)
  local short = m.window and math.min(SHORT, part) or SHORT
  local wait = math.min(math.max(asked, doubled), most)
  local till = e.at + wait + short + math.max(JITTER, part) * jitter
  m.blocked = {
    till = math.max(till, blocked and blocked.till or 0),
    at = same and blocked.at or m.answers,
  }
  if m.mark then
    m.mark.left = 0
    m.mark.at = m.answers
    m.mark.ms = e.at
  end
end

local function learn_pace(m, e)
  if e.limit or e.remaining then
    m.limit = e.limit or math.max(m.limit or 0, e.remaining + 1)
  end
  m.told = m.told or e.limit ~= nil
  m.window = e.window or m.window
  m.trip = math.min(m.trip or HUGE, e.trip)
  m.usual = m.usual and m.usual * 0.8 + e.trip * 0.2 or e.trip
end

local function learn(m, e, jitter)
  learn_pace(m, e)
  if e.refused then return block(m, e, jitter) end
  counted(m, e.at)
  use(m, e.at, 1)
  m.opened.own = m.opened.own + 1
  grow(m)
  if m.blocked then
    -- It tells of the time before.
    if e.answers < m.blocked.at then return end
    m.blocked = nil
    m.refusals = 0
    guess(m, e.at, true)
  end
  if m.unknown then
    if e.answers < m.unknown then return end
    m.unknown = nil
    m.mark = nil
    m.opened = { ms = e.at, own = 1, short = false }
  end
  if e.remaining and m.limit then
    local shown = math.max(0, e.remaining - math.floor(m.limit * m.reserve))
    believe(m, e, latest(m, e, shown))
  elseif m.mark then
    m.mark.left = math.max(0, m.mark.left - 1)
  else
    guess(m, e.at, false)
  end
end

-- One event that a worker reports, of a lease that may have run out.
local function report(m, e, now, jitter)
  local lease = land(m, e.lease, e.n)
  if e.is == 'back' then return end
  if e.is == 'lost' then
    if lease then miss(m, now, 1) end
    return
  end
  e.at = now - e.age
  -- Of a lease that is not known it may be older than all that is: it raises nothing.
  e.answers = lease and lease.answers or -1
  e.base = lease and lease.base
  if lease then m.answers = m.answers + 1 end
  learn(m, e, jitter)
end
`;
