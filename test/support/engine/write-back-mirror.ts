/** A CRM that tells what changed, and two people who are on the platform. */
import { expect } from 'vitest';
import type { Answer, Request, Send } from '../../../src/domain/exchange.ts';
import { openStage, type Stage, type StageOptions } from './engine-stage.ts';
import { ann, record } from './two-mirrors.ts';

const bob = 'bob@example.com';
export const cid = 'cid@example.com';

/** It was read wholly, and nothing is left to do. */
export async function settled(options: StageOptions = {}): Promise<Stage> {
  const stage = openStage({ tellsChanges: true, ...options });
  stage.people.push(record('1', ann), record('2', bob));
  expect(await stage.sync()).toMatchObject({ status: 'done' });
  stage.asked.length = 0;
  stage.writes();
  return stage;
}

/** Edits the record of this id, as the CRM does: it is told with the changes. */
export function edit(stage: Stage, id: string, news: Record<string, unknown>): void {
  const found = stage.people.find((person) => person['id'] === id);
  if (found) Object.assign(found, news);
  else stage.people.push({ id, ...news });
  stage.changed.push(id);
}

export const fast = async (stage: Stage) => stage.sync({ mode: 'fast' });

export const shown = (stage: Stage, email: string, channel = 'ch_news') =>
  stage.emulator.world.contact(email)?.channels.find(({ id }) => id === channel)?.subscription;

/** A platform that can be told to fail whatever changes something. */
export function failing() {
  const state: { how: 'well' | 'refuses' | 'is away' | 'breaks' } = { how: 'well' };
  const answer = (status: number): Answer => {
    const error = { code: 'bad_request', message: 'no' };
    return { status, headers: {}, body: JSON.stringify({ error }) };
  };
  const wire = (send: Send): Send => {
    return async (request: Request, signal) => {
      if (request.method === 'GET' || state.how === 'well') return send(request, signal);
      if (state.how === 'breaks') throw new TypeError('a bug');
      return answer(state.how === 'refuses' ? 400 : 503);
    };
  };
  return { state, wire };
}
