/**
 * What Redis holds of the fleet: its keys, the time after which a worker counts as dead, and the
 * parts of scripts that change it.
 */
import { prefix } from './queue-names.ts';

/** The period of silence after which a worker counts as dead. */
export const aliveMs = 15_000;

/** What Redis stores of the fleet; placement/fleet-store.ts reads it. */
export const fleetKeys = {
  /** The living processes, by the time of their last beat in milliseconds. */
  nodes: `${prefix}:fleet:nodes`,
  records: `${prefix}:fleet:records`,
  draining: `${prefix}:fleet:draining`,
  people: `${prefix}:fleet:people`,
  /** The disk of each mirror's snapshot: the id of its folder, `@`, and a machine that has it. */
  disks: `${prefix}:fleet:disks`,
  /** Another value after each change in the fleet. */
  changed: `${prefix}:fleet:changed`,
} as const;

/** The bell of a process (job-bell.ts) has this key, and this member when the fleet has changed. */
export const bellKeys = `${prefix}:bell:`;
export const fleetMember = 'fleet';

/** The part of a script that removes a process from the fleet. */
export const forgetNode = `
local function forgetNode(name)
  redis.call('ZREM', '${fleetKeys.nodes}', name)
  redis.call('HDEL', '${fleetKeys.records}', name)
  redis.call('SREM', '${fleetKeys.draining}', name)
end
`;

/** The part of a script that says that the fleet has changed, and wakes those who wait for jobs. */
export const fleetChanged = `
local function fleetChanged()
  local time = redis.call('TIME')
  redis.call('SET', '${fleetKeys.changed}', time[1] .. '.' .. time[2])
  for _, node in ipairs(redis.call('ZRANGE', '${fleetKeys.nodes}', 0, -1)) do
    redis.call('ZADD', '${bellKeys}' .. node, 0, '${fleetMember}')
    redis.call('PEXPIRE', '${bellKeys}' .. node, ${aliveMs})
  end
end
`;
