/** The keys of every JSON document, and the types that stand there: programs read them by name. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';
import { shapeOfAll } from './shape.ts';

const file = (name: string) => join(import.meta.dirname, 'files/documents', `${name}.txt`);

/** A mirror with somebody who left, somebody held, something rejected and a template. */
async function used(): Promise<Mirrored> {
  const world = await mirrored({ kinds: ['contact', 'template'] });
  world.template('welcome', { subject: 'Hi' });
  await world.call('sync');
  const carl = 'carl@example.com';
  world.emulator.dashboard.leave(world.emulator.world.contact(ann)?.id ?? '', 'ch_news');
  world.emulator.seed.contact({ email: carl, channels: { ch_news: 'opt_in' } });
  world.server.fail(({ body }) => body.subscription === 'opt_out', { is: 'answer', status: 422 });
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'no', product: 'no' },
    { email: carl, news: 'no' },
  ]);
  await world.call('sync');
  return world;
}

interface Row {
  name: string;
  argv: string[] | ((world: Mirrored) => Promise<string[]>);
}

const lastRun = async (world: Mirrored): Promise<string[]> => {
  const { json } = await world.call('runs', '--json');
  return ['runs', json.runs[0].run];
};

const rows: Row[] = [
  { name: 'check', argv: ['check'] },
  { name: 'plan', argv: ['plan'] },
  { name: 'rehearse', argv: ['rehearse'] },
  { name: 'sync', argv: ['sync'] },
  { name: 'backfill', argv: ['backfill'] },
  { name: 'one', argv: ['sync', '--person', bob] },
  { name: 'status', argv: ['status'] },
  { name: 'runs', argv: ['runs'] },
  { name: 'runs-of-one', argv: lastRun },
  { name: 'explain', argv: ['explain', bob] },
  { name: 'explain-offline', argv: ['explain', bob, '--offline', '--addresses'] },
  { name: 'optouts', argv: ['optouts'] },
  { name: 'requests', argv: ['audit', 'requests', '--route', 'contacts.enrol'] },
  { name: 'retry', argv: ['retry'] },
  { name: 'unmanaged', argv: ['unmanaged'] },
  { name: 'pause', argv: ['pause'] },
  { name: 'resume', argv: ['resume'] },
  { name: 'forget', argv: ['forget', ann, '--yes'] },
  { name: 'allow', argv: ['allow', ann] },
  { name: 'domains-list', argv: ['platform', 'domains', 'list'] },
  { name: 'refused', argv: ['explain', 'nobody'] },
];

test.each(rows)('$name', async ({ name, argv }) => {
  const world = await used();
  const words = typeof argv === 'function' ? await argv(world) : argv;
  const { out } = await world.call(...words, '--json');
  const document: unknown = JSON.parse(out);
  await expect(shapeOfAll([document])).toMatchFileSnapshot(file(name));
});
