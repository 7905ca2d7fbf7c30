/** Somebody whose address changes in the CRM. */
import { openStage, type Stage, type StageOptions } from './engine-stage.ts';

export const OLD = 'old@example.com';
export const NEW = 'new@example.com';

interface Moving extends StageOptions {
  /** What was there before the move. */
  before?(stage: Stage): void;
}

/** Lea is in both channels under the old address, and the CRM has the new one. */
export async function moved(wishes: object = {}, options: Moving = {}): Promise<Stage> {
  const { before = known } = options;
  const stage = openStage(options);
  before(stage);
  await stage.sync();
  stage.people[0] = { id: '1', email: NEW, ch_news: 'yes', ch_product: 'yes', ...wishes };
  stage.writes();
  return stage;
}

function known({ people }: Stage): void {
  people.push({ id: '1', email: OLD, ch_news: 'yes', ch_product: 'yes' });
}

/** Lists what was sent: operation, address, channel. */
export const sent = (stage: Stage) =>
  stage.writes().map(({ method, subscription, contactId, email, channelId, status }) => {
    const now = stage.emulator.world.contacts().find(({ id }) => id === contactId)?.email;
    const who = now ?? email ?? contactId;
    const how = status < 300 ? '' : ' no';
    if (method === 'DELETE') return `delete ${who}${how}`;
    return `${subscription} ${who} ${channelId}${how}`;
  });
