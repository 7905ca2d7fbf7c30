/**
 * Counts, in Lua for budget-script.ts, the fleet's requests that a server may still count, and the
 * outstanding permits. src/rate-limit/request-usage.ts describes the conclusions.
 *
 * A lease is a handful of permits for one worker, all used at once. A lease that expires counts as
 * spent, because its worker may have sent the requests before it died.
 */
export const usage = `
local HUGE = 1e15
-- Above so many, requests answered at nearly the same time are remembered as one.
local GRAINS = 100

-- When what was answered at ms counts no more.
local function back_at(m, ms)
  return ms - 0.75 * (m.trip or 0) + (m.window or 0) + 2
end

local function use(m, ms, n)
  local last = m.grains[#m.grains]
  local at = last and math.max(ms, last.to) or ms
  m.counts = m.counts + n
  if last and #m.grains >= GRAINS and at - last.from < (m.window or 0) / GRAINS then
    last.to = at
    last.n = last.n + n
  else
    m.grains[#m.grains + 1] = { from = at, to = at, n = n }
  end
end

local function counted(m, now)
  while m.grains[1] and back_at(m, m.grains[1].to) <= now do
    m.counts = m.counts - m.grains[1].n
    table.remove(m.grains, 1)
  end
  return m.counts
end

-- When at most so many count.
local function down_to(m, most)
  local left = m.counts
  for _, grain in ipairs(m.grains) do
    left = left - grain.n
    if left <= most then return back_at(m, grain.to) end
  end
  return -HUGE
end

-- How many certainly counted at both ends of a round trip.
local function surely(m, sent, now)
  local sum = 0
  for _, grain in ipairs(m.grains) do
    if grain.to <= sent and back_at(m, grain.to) - 3 * (m.trip or 0) > now then
      sum = sum + grain.n
    end
  end
  return sum
end

local function flying(m)
  local sum = 0
  for _, lease in pairs(m.leases) do sum = sum + lease.n end
  return sum
end

-- Units of the limit that are ours to use.
local function units(m)
  local limit = m.limit or 1
  return math.max(1, limit - math.floor(limit * m.reserve))
end

-- The limit without the requests of the fleet that count still.
local function unused(m, now)
  if not m.limit or not m.window then return 0 end
  return units(m) - counted(m, now)
end

local function alone(m, now)
  return not m.mark or now >= m.company
end

-- n answers of these will not come, or told nothing: they may have counted.
local function miss(m, now, n)
  m.answers = m.answers + n
  m.opened.own = m.opened.own + n
  use(m, now, n)
  if m.mark then m.mark.left = math.max(0, m.mark.left - n) end
end

-- n permits of a lease are no longer out.
local function land(m, id, n)
  local lease = m.leases[id]
  if not lease then return nil end
  lease.n = lease.n - n
  if m.probe == id then m.probe = nil end
  if lease.n <= 0 then m.leases[id] = nil end
  return lease
end

-- Those of a worker that was away are not waited for: it may not even know of them.
local function expire(m, now, away)
  for id, lease in pairs(m.leases) do
    if lease.till <= now or lease.worker == away then
      local n = lease.n
      land(m, id, n)
      miss(m, now, n)
    end
  end
end
`;
