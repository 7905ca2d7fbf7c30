/** Asks a Redis for its name, and whether it keeps what it is given. */
import { connectQuickly } from './redis-connections.ts';

/** The answer of a Redis about itself. */
export interface Looked {
  /** Name and version, such as `Redis 7.0.15` or `Valkey 8.1.0`. */
  name: string;
  /**
   * The policy by which it drops keys once its memory is full; undefined: it drops nothing, or does
   * not say.
   */
  evictsBy: string | undefined;
}

const fix =
  'start it, or correct `redis` in the configuration; Node trusts an authority of your own by ' +
  'NODE_EXTRA_CA_CERTS';

/** Asks the Redis at this address. Throws Unavailable with the reason and the fix. */
export async function lookAtRedis(url: string): Promise<Looked> {
  const quick = connectQuickly(url);
  try {
    const info = await quick.ask(async () => quick.redis.info(), fix);
    const told = (name: string): string | undefined =>
      new RegExp(`^${name}:(.+?)\\r?$`, 'm').exec(info)?.[1];
    const valkey = told('valkey_version');
    const policy = told('maxmemory_policy');
    return {
      name: valkey === undefined ? `Redis ${told('redis_version')}` : `Valkey ${valkey}`,
      evictsBy: policy === 'noeviction' ? undefined : policy,
    };
  } finally {
    quick.close();
  }
}
