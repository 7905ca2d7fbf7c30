/**
 * Decides how many permits a worker gets and when to ask again: src/rate-limit/route-budget.ts in
 * Lua, for budget-script.ts. There is one difference: workers do not see each other's responses, so
 * a worker that gets nothing is given a time. It is the time at which capacity is back, if that is
 * known. Otherwise it is about one round trip, or longer if the limit is so low that workers would
 * do nothing but ask.
 */
export const decide = `
local LEAST_FOR_SENSORS = 8
local MOST_FOREIGN = 0.34
local SPARE = 2
local MARGIN = 2
local LONGEST_ROUND = 500
local UNKNOWN_TRIP = 25
local LEAST_LEASE = 2000

-- Of what trickles back without end, no more in any window than is not reserved.
local function ours(m, now)
  return m.reserve > 0 and unused(m, now) or HUGE
end

-- What is left, what is out not taken off.
local function left_of(m, now)
  local shown = m.mark and m.mark.left or 0
  if m.trickle then return math.min(shown, ours(m, now)) end
  if not alone(m, now) then return shown end
  local back = unused(m, now)
  -- Until that was seen once, one request finds out.
  return math.max(shown, m.proven and back or math.min(1, back))
end

local function others(m)
  local used = math.max(m.opened.own, units(m) - (m.mark and m.mark.left or 0))
  return 1 - m.opened.own / math.max(1, used)
end

local function most_flying(m, now, spare)
  if spare <= 0 then return 0 end
  local most = spare
  if not alone(m, now) then
    most = math.floor(spare * (m.trickle and 0.5 or (1 - others(m)) / 2))
  end
  return math.min(m.pace, math.max(1, most))
end

local function sensors_of(limit)
  return math.min(4, math.max(1, math.floor(limit * 0.02 + 0.5)))
end

-- Sensors; in company the last unit, lest two take it at the same time.
local function held_back(m, now, waiting, all)
  local limit = m.limit or 0
  if not m.mark or limit < LEAST_FOR_SENSORS then return 0 end
  local sensors = sensors_of(limit)
  if not alone(m, now) then return m.trickle and sensors + 1 or 1 end
  return waiting + flying(m) <= all and 0 or sensors
end

-- In company, of a window that opened short: when a few of our own requests count no more.
local function some_back(m)
  if not m.opened.short or not (m.mark and m.mark.counts) or m.mark.left == 0 then return HUGE end
  return down_to(m, math.max(0, m.mark.counts - math.max(2, sensors_of(m.limit or 1))))
end

-- Where nothing comes back bit by bit: when our own requests and what others use leave room.
local function own_back(m, now)
  local share = math.max(foreign_share(m), m.foreign or 0)
  if not m.opened.short or share > MOST_FOREIGN or now >= (m.rigid or 0) then return HUGE end
  local others = math.ceil(share * (m.limit or 1)) + SPARE
  return down_to(m, math.max(0, units(m) - others - 1))
end

-- When nothing is out, and all that is left is held back: when to send the next one.
local function back_when(m, now, all)
  local at = m.mark and m.mark.ms or now
  if m.mark and m.mark.reset then return m.mark.reset + SHORT end
  if not m.window then return at + LEAST_WAIT end
  if m.trickle then
    local held = math.max(1, held_back(m, now, HUGE, all))
    local missing = held + 1 - math.max(0, all)
    local unit = at + math.min(m.window, missing * m.window / (m.limit or 1)) + MARGIN
    if ours(m, now) <= held then unit = math.max(unit, down_to(m, units(m) - held - 1)) end
    return alone(m, now) and unit or math.min(unit, own_back(m, now))
  end
  if not alone(m, now) then
    return math.min(back_at(m, m.opened.ms), some_back(m), own_back(m, now))
  end
  local open = down_to(m, units(m) - 1 - all)
  if all <= 0 then return open end
  local spaced = at + (open - at) / (all + 1)
  local beat = m.mark and m.mark.beat or HUGE
  if all == 1 and beat < open then return beat end
  return math.min(open, spaced, beat)
end

-- While something is out, or another worker may find out more.
local function round_trip(m, now)
  local trip = m.usual or UNKNOWN_TRIP
  local oldest = now
  for _, lease in pairs(m.leases) do oldest = math.min(oldest, lease.at) end
  local age = now - oldest
  local wait = age < trip and math.max(trip - age, trip / 2) or age / 2
  return math.min(LONGEST_ROUND, math.max(5, wait))
end

-- The time in which each worker that waits gets one unit.
local function share_of_time(m)
  if not m.limit or not m.window then return 0 end
  return m.window / m.limit * m.eager
end

local function ask_again(m, now)
  local quiet = math.min(share_of_time(m), (m.window or 0) / 4)
  return 0, math.max(round_trip(m, now), quiet)
end

local function some(m, room, want)
  -- Something is left for the others, who ask in the next moment.
  if m.eager > 1 then room = math.ceil(room / 2) end
  return math.min(room, want), 0
end

local function decide(m, now, want)
  if m.blocked and m.blocked.till > now then return 0, m.blocked.till - now end
  if m.blocked or m.unknown then
    if m.probe then return ask_again(m, now) end
    return 1, 0
  end
  local out = flying(m)
  if not m.mark and (not m.limit or not m.window) then
    if m.pace > out then return some(m, m.pace - out, want) end
    return ask_again(m, now)
  end
  local all = left_of(m, now)
  local room = most_flying(m, now, all - held_back(m, now, want, all)) - out
  if room > 0 then return some(m, room, want) end
  if out > 0 then return ask_again(m, now) end
  local at = back_when(m, now, all)
  if at <= now then return 1, 0 end
  if m.eager < 2 then return 0, at - now end
  -- One of those that wait gets what comes back, or finds out earlier that more did.
  if m.trickle then return 0, math.max(at - now, math.min(share_of_time(m), m.window or 0)) end
  return 0, math.min(at - now, math.max(50, 4 * share_of_time(m)))
end

local function lease(m, now, n, message)
  m.leased = m.leased + 1
  local id = m.born .. ':' .. m.leased
  -- What is left after all of it, were nobody else to send: see "less" in believe.
  local base = unused(m, now) - flying(m) + m.sent
  m.sent = m.sent + n
  local ttl = math.min(message.ttl, math.max(LEAST_LEASE, 10 * (m.usual or HUGE)))
  -- Were slow answers to find their permits spent, nothing would ever be learnt from them.
  ttl = math.max(ttl, 3 * (m.usual or 0))
  m.leases[id] = {
    worker = message.worker, n = n, at = now, till = now + ttl, answers = m.answers, base = base,
  }
  if m.blocked or m.unknown then m.probe = id end
  return id
end
`;
