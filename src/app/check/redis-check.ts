/** Reads a Redis server's name, and checks whether it keeps stored data. */
import { connectQuickly, evictionPolicyIn } from '../../compose/queues/redis-connections.ts';

/** What a Redis server reports about itself. */
export interface Looked {
  /** The name and version, such as `Redis 7.0.15` or `Valkey 8.1.0`. */
  name: string;
  /**
   * The policy by which it drops keys when its memory is full; undefined if it drops none or does
   * not report it.
   */
  evictsBy: string | undefined;
}

const fix =
  'start it, or correct `redis` in the configuration; Node trusts an authority of your own by ' +
  'NODE_EXTRA_CA_CERTS';

/** Queries the Redis server at this address. Throws Unavailable with the reason and the fix. */
export async function lookAtRedis(url: string): Promise<Looked> {
  const quick = connectQuickly(url);
  try {
    const info = await quick.ask(async () => quick.redis.info(), fix);
    const told = (name: string): string | undefined =>
      new RegExp(`^${name}:(.+?)\\r?$`, 'm').exec(info)?.[1];
    const valkey = told('valkey_version');
    return {
      name: valkey === undefined ? `Redis ${told('redis_version')}` : `Valkey ${valkey}`,
      evictsBy: evictionPolicyIn(info),
    };
  } finally {
    quick.close();
  }
}
