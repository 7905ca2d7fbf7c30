/**
 * Keeps the budget of a fleet as a log in Redis: a stream of the messages of all processes. A
 * process appends its message and reads in the same round trip what others appended since its last
 * one. It then serves all of them in their order with its own replica of the budget, so that every
 * process comes to the same result, and its own reply is the result of its own message. Times are
 * those of Redis.
 *
 * When much has been appended, a process adds a copy of its replica to its next message, and what
 * is older is removed. A process that finds its last entry removed, or has just started, begins
 * with the newest copy; without one, at the beginning of the log. The log is lost with the data of
 * Redis; then all of them begin anew, and no copy of what was before is added to the new log.
 *
 * The log holds numbers and the random ids of processes, but no personal data and no secret. It
 * expires when it can no longer have any effect.
 */
import { checkedJson } from '../../../domain/stored-json.ts';
import { z } from 'zod';
import {
  isBehind,
  keepMs,
  newFleet,
  serveMessage,
  type FleetBudget,
  fleetBudget,
  message,
  type Message,
  type Reply,
} from './fleet-budget.ts';
import type { Link } from './redis-connection.ts';

/**
 * KEYS[1] is the log. ARGV holds the id and time of the last entry that is known, the new message,
 * a copy of the budget after that entry, or nothing, and the milliseconds after which the log
 * expires at the earliest. The copy is added only if the entry is there, and nobody has added
 * another one meanwhile. Returns the id of the new entry, and whether that entry is there (`next`)
 * or not (`all`); then of each entry after it, or of all: the id, the time (seconds and
 * microseconds), the message, the length of its copy, and the copy if all entries are returned.
 */
const lua = `
local time = redis.call('TIME')
local now = time[1] .. '.' .. string.format('%06d', time[2])
local found = redis.call('XRANGE', KEYS[1], ARGV[1], '+')
local isKnown = #found > 0 and found[1][1] == ARGV[1] and found[1][2][2] == ARGV[2]
local copy = isKnown and ARGV[4] or ''
for at = 2, #found do
  if (found[at][2][6] or '') ~= '' then copy = '' end
end
local id = redis.call('XADD', KEYS[1], '*', 'at', now, 'message', ARGV[3], 'copy', copy)
if copy ~= '' then redis.call('XTRIM', KEYS[1], 'MAXLEN', #found + 1) end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[5]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
local told = {id, isKnown and 'next' or 'all'}
local from = isKnown and '(' .. ARGV[1] or '-'
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], from, '+')) do
  local fields = entry[2]
  local text = fields[6] or ''
  for _, part in ipairs({entry[1], fields[2], fields[4], tostring(#text)}) do
    table.insert(told, part)
  end
  table.insert(told, isKnown and '' or text)
end
return told
`;

const appendScript = { name: 'crmMirrorAppendMessage', lua };
const forgetScript = { name: 'crmMirrorForgetLog', lua: `redis.call('DEL', KEYS[1]) return {}` };
const PARTS = 5;

/** A copy is due after this many characters, or twice those of the last copy. */
const MOST_WITHOUT_COPY = 20_000;
const START = '0-0';

/** The budget after the entry `after`. */
const copySchema = z.object({ after: z.string(), fleet: fleetBudget });

export type BudgetLog = ReturnType<typeof budgetLog>;

interface Entry {
  id: string;
  /** The time as Redis wrote it. */
  at: string;
  message: string;
  copyLength: number;
  copy: string;
}

/** The budget after all entries that this process has seen. */
interface Replica {
  last: { id: string; at: string };
  fleet: FleetBudget | undefined;
  /** The characters in the log since its newest copy, and those of that copy. */
  size: number;
  copySize: number;
}

/** Creates the access to a log in Redis; nothing is read before the first message. */
export function budgetLog({ link, key }: { link: Link; key: string }) {
  let replica = emptyReplica();
  return {
    /** Appends a message and returns its reply. Returns undefined if Redis is away. */
    async send(message: Message): Promise<Reply | undefined> {
      const { last, fleet, size, copySize } = replica;
      const isDue = fleet !== undefined && size > Math.max(MOST_WITHOUT_COPY, 2 * copySize);
      const copy = isDue ? JSON.stringify({ after: last.id, fleet }) : '';
      const forMs = keepMs(fleet, message);
      const args = [last.id, last.at, JSON.stringify(message), copy, `${forMs}`];
      const found = await link.run(appendScript, key, args);
      if (!found) return undefined;
      const [own = '', which, ...parts] = found;
      const all: Entry[] = [];
      for (let from = 0; from + PARTS <= parts.length; from += PARTS) {
        const [id = '', at = '', text = '', length = '', copied = ''] = parts.slice(from);
        all.push({ id, at, message: text, copyLength: Number(length), copy: copied });
      }
      if (which === 'all') replica = begin(all);
      return follow(replica, all, own);
    },
    /** Removes the log, so that all processes begin anew. */
    forget: async () => void (await link.run(forgetScript, key, [])),
  };
}

function emptyReplica(): Replica {
  return { last: { id: START, at: '' }, fleet: undefined, size: 0, copySize: 0 };
}

/** Returns the newest copy of a log; without one, an empty replica. */
function begin(all: readonly Entry[]): Replica {
  for (const { copy } of all.toReversed()) {
    const newest = parsed(copySchema, copy);
    if (!newest) continue;
    const { after, fleet } = newest;
    return { ...emptyReplica(), last: { id: after, at: '' }, fleet };
  }
  return emptyReplica();
}

/** Serves the messages that are later than the replica, and returns the reply to the own one. */
function follow(replica: Replica, all: readonly Entry[], own: string): Reply | undefined {
  let ownReply: Reply | undefined;
  for (const { id, at, message: text, copyLength } of all) {
    if (!isLater(id, replica.last.id)) continue;
    replica.last = { id, at };
    const hasCopy = copyLength > 0;
    replica.size = hasCopy ? 0 : replica.size + text.length;
    if (hasCopy) replica.copySize = copyLength;
    const one = parsed(message, text);
    if (!one) continue;
    const atMs = Number(at) * 1000;
    const { fleet } = replica;
    replica.fleet = fleet && !isBehind(fleet, atMs) ? fleet : newFleet(atMs);
    const reply = serveMessage(replica.fleet, one, atMs);
    if (id === own) ownReply = reply;
  }
  return ownReply;
}

/** Parses JSON. Returns undefined if it is not of this form. */
function parsed<T>(schema: z.ZodType<T>, text: string): T | undefined {
  if (text === '') return undefined;
  try {
    return checkedJson('a message', schema).decode(text);
  } catch {
    return undefined;
  }
}

/** Compares the ids of a stream: milliseconds, a hyphen and a number. */
function isLater(one: string, other: string): boolean {
  const [ms = 0, n = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherN = 0] = other.split('-').map(Number);
  return ms === otherMs ? n > otherN : ms > otherMs;
}
