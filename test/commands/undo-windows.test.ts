/** `undo` while no window of the configuration allows its changes. */
import { expect, test } from 'vitest';
import { localTime, weekdays } from '../../src/domain/values/local-time.ts';
import { ann, bob, mirrored } from '../support/commands/mirrored-contacts.ts';

const day = weekdays[(weekdays.indexOf(localTime(Date.now(), 'UTC').weekday) + 3) % 7];
const closed = (...classes: string[]) => [{ allow: `${day} 10:00-11:00`, for: classes }];

async function world(deletes: 'off' | 'created' = 'off') {
  const made = await mirrored({ lines: { policy: { deletes } } });
  const run: string = (await made.call('sync', '--json')).json.run;
  const close = (...classes: string[]) =>
    made.config({ policy: { deletes }, windows: closed(...classes) });
  return { ...made, run, close };
}

test('the opt-outs of `undo` are sent at any time', async () => {
  const { call, close, run, shown } = await world();
  close('delete', 'opt_in');
  const { code, json } = await call('undo', run, '--yes', '--json');
  expect({ code, applied: json.contacts.applied.opt_out }).toEqual({ code: 0, applied: 2 });
  expect([shown(ann)?.['ch_news'], shown(bob)?.['ch_news']]).toEqual(['opt_out', 'opt_out']);
});

test('what waits is not done by any other run, so the command says when to call it again', async () => {
  const { call, close, run, shown, config } = await world('created');
  close('delete');
  const part = await call('undo', run, '--yes');
  expect(part.code).toBe(75);
  expect(part.said).toContain(`run \`crm-mirror undo ${run} -c`);
  expect(part.said).toContain(`again from ${day} 10:00 UTC on`);
  expect(part.said).not.toContain('wait for');
  expect(shown(ann)?.['ch_news']).toBe('opt_out');
  expect((await call('sync')).code).toBe(0);
  config({ policy: { deletes: 'created' }, windows: [{ allow: '00:00-24:00' }] });
  expect((await call('undo', run, '--yes', '--json')).code).toBe(0);
  expect([shown(ann), shown(bob)]).toEqual([undefined, undefined]);
});
