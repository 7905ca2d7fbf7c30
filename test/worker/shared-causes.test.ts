/** One message of a cause for all mirrors of a process that have it. */
import { createSharedCauses } from '../../src/worker/notifications/notifier.ts';
import { expect, test } from 'vitest';

function world() {
  let ms = 0;
  const causes = createSharedCauses(() => ms);
  const cause = 'redis_away redis://r';
  return {
    pass: (seconds: number) => void (ms += seconds * 1_000),
    has: (mirror: string) => causes.found(mirror, [cause]),
    lost: (mirror: string) => causes.found(mirror, []),
    leave: causes.leave,
    send: (mirror: string, isOver = false, receiver = 'mail') =>
      causes.decide(mirror, { cause, receiver, isOver }),
    sent: (mirror: string, isOver = false) =>
      causes.sent(mirror, { cause, receiver: 'mail', isOver }),
  };
}

test('three mirrors make one message for each receiver, at the beginning and at the end', () => {
  const { pass, has, lost, send, sent } = world();
  has('acme');
  expect(send('acme')).toBe('wait');
  pass(5);
  has('beta');
  has('gamma');
  pass(6);
  expect(send('beta')).toBe('wait');
  expect(send('acme')).toEqual(['acme', 'beta', 'gamma']);
  sent('acme');
  expect([send('gamma'), send('beta')]).toEqual(['told', 'told']);
  expect(send('acme', false, 'chat')).toEqual(['acme', 'beta', 'gamma']);
  lost('acme');
  expect(send('acme', true)).toBe('wait');
  lost('beta');
  lost('gamma');
  expect([send('gamma', true), send('beta', true)]).toEqual(['wait', 'wait']);
  expect(send('acme', true)).toEqual(['acme', 'beta', 'gamma']);
  sent('acme', true);
  expect([send('gamma', true), send('beta', true)]).toEqual(['told', 'told']);
});

test('a mirror that finds the cause later counts as told, and is named at the end', () => {
  const { pass, has, lost, send, sent } = world();
  has('acme');
  pass(11);
  expect(send('acme')).toEqual(['acme']);
  sent('acme');
  has('beta');
  expect(send('beta')).toBe('told');
  lost('acme');
  lost('beta');
  expect(send('beta', true)).toBe('wait');
  expect(send('acme', true)).toEqual(['acme', 'beta']);
});

test('the next outage is told again', () => {
  const { pass, has, lost, send, sent } = world();
  has('acme');
  pass(11);
  send('acme');
  sent('acme');
  lost('acme');
  send('acme', true);
  sent('acme', true);
  pass(30);
  has('acme');
  pass(11);
  expect(send('acme')).toEqual(['acme']);
  lost('acme');
  expect(send('acme', true)).toEqual(['acme']);
});

test('a process that was started anew tells the end once, although it has told no beginning', () => {
  const { has, lost, send, sent } = world();
  has('acme');
  has('beta');
  lost('acme');
  expect(send('acme', true)).toBe('wait');
  lost('beta');
  expect(send('acme', true)).toEqual(['acme', 'beta']);
  sent('acme', true);
  expect(send('beta', true)).toBe('told');
});

test('the first mirror tells it until it succeeds, or leaves the process', () => {
  const { pass, has, leave, lost, send } = world();
  has('acme');
  has('beta');
  pass(11);
  expect(send('acme')).toEqual(['acme', 'beta']);
  expect(send('beta')).toBe('wait');
  expect(send('acme')).toEqual(['acme', 'beta']);
  leave('acme');
  lost('beta');
  expect(send('beta', true)).toEqual(['acme', 'beta']);
});

test('a cause that ends for the first mirror before it could tell it is told by the next', () => {
  const { pass, has, lost, send } = world();
  has('acme');
  has('beta');
  expect([send('acme'), send('beta')]).toEqual(['wait', 'wait']);
  pass(11);
  expect(send('beta')).toBe('wait');
  lost('acme');
  expect(send('beta')).toEqual(['acme', 'beta']);
});

test('what the first mirror cannot tell in five minutes is told by another one', () => {
  const { pass, has, lost, send, sent } = world();
  has('acme');
  has('beta');
  pass(11);
  expect(send('acme')).toEqual(['acme', 'beta']);
  pass(299);
  expect(send('beta')).toBe('wait');
  pass(1);
  expect(send('beta')).toEqual(['acme', 'beta']);
  sent('beta');
  expect(send('acme')).toBe('told');
  lost('acme');
  lost('beta');
  expect(send('acme', true)).toBe('wait');
  pass(301);
  expect(send('acme', true)).toEqual(['acme']);
});

test('a mirror that comes long after the end tells it by itself', () => {
  const { pass, has, lost, send, sent } = world();
  has('acme');
  pass(11);
  send('acme');
  sent('acme');
  lost('acme');
  expect(send('acme', true)).toEqual(['acme']);
  sent('acme', true);
  expect(send('beta', true)).toBe('told');
  pass(301);
  expect(send('gamma', true)).toEqual(['gamma']);
});

test('another mirror tells the end where the first one cannot, however often it asks', () => {
  const { pass, has, lost, send, sent } = world();
  has('acme');
  has('beta');
  pass(11);
  send('acme');
  sent('acme');
  lost('acme');
  lost('beta');
  for (let minute = 0; minute < 5; minute += 1) {
    expect(send('beta', true)).toBe('wait');
    pass(60);
  }
  expect(send('beta', true)).toEqual(['beta']);
});
