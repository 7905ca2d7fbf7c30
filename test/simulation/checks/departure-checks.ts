/** The CRM as it is told who left on the platform: nobody is reported who did not leave. */
import { keyOf } from '../../support/engine/sample-people.ts';
import type { OptOutReport } from '../../../src/domain/opt-out-report.ts';
import type { WriteBack } from '../../../src/sources/source.ts';
import type { Known } from './checker-state.ts';
import type { Life } from '../world/process-life.ts';
import type { Reached } from '../coverage.ts';
import { fallbackOf } from '../story/story.ts';
import { pastOf, type Person, type State } from '../world/platform-history.ts';

interface Listening {
  life: Life;
  known: Known;
  reached: Reached;
  /** What a checker found. */
  found(error: unknown): void;
}

export function listening({ life, known, reached, found }: Listening): WriteBack {
  return {
    most: 10,
    takes: () => true,
    look: () => 'kept',
    async *tell(batch) {
      for (const one of batch) {
        await life.wait(Promise.resolve());
        reached.note('run', 'an unsubscribe is reported to the CRM');
        try {
          checkReported(one, known);
        } catch (error) {
          found(error);
        }
        yield { is: 'told' };
      }
    },
  };
}

/** A person, a colleague or another program did it, under this address or before it was changed. */
function checkReported(
  { email: spelt, channel }: Pick<OptOutReport, 'email' | 'channel'>,
  { story, witness, memories, erasures, judge }: Known,
): void {
  const email = keyOf(spelt);
  const people = witness
    .people()
    .filter(({ key, former }) => key === email || former?.key === email);
  const leftAll = people.some(({ left }) => left) || witness.wasTouched(email, '*');
  const isLeft = ({ key, former, channels }: Person): boolean => {
    const keys = [key, former?.key ?? key];
    const forgottenAt = keys.map((one) => erasures.lastOf(one));
    // Our own delete takes with it what was recorded of its address, a renamed contact's too.
    const deletedAt = witness
      .people()
      .map((one) =>
        keys.includes(one.key) && one.gone?.by === 'us' ? one.gone.at : Number.NEGATIVE_INFINITY,
      );
    const lostAt = Math.max(memories.lostAt(), ...forgottenAt, ...deletedAt);
    return wasLeft(channels.get(channel), lostAt);
  };
  const left = channel === '*' ? leftAll : people.some(isLeft);
  const isShown = people.some(({ channels }) => channels.get(channel) === undefined);
  const isDefault = isShown && fallbackOf(story) === 'opt_out';
  if (isDefault && witness.people().some((person) => hidesDefault(person, channel))) return;
  const wrong = !left && `${email} is reported as having left ${channel}, and nobody did that`;
  judge('people reported as unsubscribed did unsubscribe', wrong);
}

/** Who signs up in the middle of our creation makes that look like the default of the channel. */
function hidesDefault({ channels }: Person, channel: string): boolean {
  const past = pastOf(channels.get(channel));
  const signedUp = past.filter(({ is, by }) => is === 'opt_in' && by === 'others');
  const others = [...channels].filter(([name]) => name !== channel);
  const ours = others.flatMap(([, state]) => pastOf(state).filter(({ by }) => by === 'us'));
  return signedUp.some(({ at }) => ours.some((other) => Math.abs(at - other.at) < 60_000));
}

/** Whose word it was goes with the snapshot, and with what it knew of the forgotten and deleted. */
function wasLeft(state: State | undefined, lostAt: number): boolean {
  return pastOf(state).some(
    ({ is, by, at }) => is !== 'opt_in' && (by === 'others' || at <= lostAt),
  );
}
