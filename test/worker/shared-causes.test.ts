/** One message of a cause for all mirrors of a process that have it. */
import { expect, test } from 'vitest';
import { createSharedCauses } from '../../src/worker/notifications/shared-causes.ts';

function world() {
  let ms = 0;
  const causes = createSharedCauses({ monotonic: () => ms });
  const about = (mirror: string, isOver: boolean, receiver = 'mail') => ({
    mirror,
    cause: 'redis_away redis://r',
    receiver,
    isOver,
  });
  return {
    pass: (seconds: number) => void (ms += seconds * 1_000),
    has: (mirror: string) => causes.found(mirror, ['redis_away redis://r']),
    lost: (mirror: string) => causes.found(mirror, []),
    causes,
    about,
    /** Decides as a sender does, and stores what is sent or counts as sent. */
    send(mirror: string, isOver = false, receiver = 'mail') {
      const notice = about(mirror, isOver, receiver);
      const is = causes.decide(notice);
      if (is !== 'wait') causes.sent(notice, is === 'told' ? [mirror] : is);
      return is;
    },
  };
}

test('three mirrors make one message for each receiver, at the beginning and at the end', () => {
  const { pass, has, lost, send } = world();
  has('acme');
  expect(send('acme')).toBe('wait');
  pass(5);
  has('beta');
  has('gamma');
  pass(6);
  expect(send('beta')).toEqual(['acme', 'beta', 'gamma']);
  expect([send('acme'), send('gamma')]).toEqual(['told', 'told']);
  expect(send('acme', false, 'chat')).toEqual(['acme', 'beta', 'gamma']);
  lost('acme');
  expect(send('acme', true)).toBe('wait');
  lost('beta');
  lost('gamma');
  expect(send('gamma', true)).toEqual(['acme', 'beta', 'gamma']);
  expect([send('acme', true), send('beta', true)]).toEqual(['told', 'told']);
});

test('a mirror that finds the cause later counts as told, and is named at the end', () => {
  const { pass, has, lost, send } = world();
  has('acme');
  pass(11);
  expect(send('acme')).toEqual(['acme']);
  has('beta');
  expect(send('beta')).toBe('told');
  lost('acme');
  lost('beta');
  expect(send('beta', true)).toEqual(['acme', 'beta']);
});

test('the next outage is told again', () => {
  const { pass, has, lost, send } = world();
  has('acme');
  pass(11);
  send('acme');
  lost('acme');
  send('acme', true);
  pass(30);
  has('acme');
  pass(11);
  expect(send('acme')).toEqual(['acme']);
  lost('acme');
  expect(send('acme', true)).toEqual(['acme']);
});

test('a process that was started anew tells the end once, although it has told no beginning', () => {
  const { has, lost, send } = world();
  has('acme');
  has('beta');
  lost('acme');
  expect(send('acme', true)).toBe('wait');
  lost('beta');
  expect(send('acme', true)).toEqual(['acme']);
  expect(send('beta', true)).toBe('told');
});

test('while one mirror sends the message, no other does, unless it fails', () => {
  const { pass, has, causes, about, send } = world();
  has('acme');
  has('beta');
  pass(11);
  causes.sending(about('acme', false));
  expect(send('beta')).toBe('wait');
  causes.failed(about('acme', false));
  expect(send('beta')).toEqual(['acme', 'beta']);
  expect(send('acme')).toBe('told');
});
